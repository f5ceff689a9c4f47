import { create, toBinary } from '@bufbuild/protobuf';
import { anyPack, durationFromMs, type Any } from '@bufbuild/protobuf/wkt';
import { queueCodes, type QueueCode } from '@millrace/contract/queue';
import { ErrorInfoSchema, RetryInfoSchema, StatusSchema } from '@millrace/contract/queue-grpc';
import { connectionsExceeded } from '@millrace/kit/connection-limit';
import { messageOf, Refusal } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import {
  errorStatus,
  type CallAbortReasons,
  type GrpcCode,
  type GrpcStatus,
  type TransportFault,
} from '@millrace/wire/grpc';
import { StorageUnavailable } from '../storage/port/task-store.js';

const domain = 'queue.millrace';

/** The gRPC twin of an HTTP status. */
const byHttpStatus: Readonly<Record<number, GrpcCode>> = {
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  410: 'FAILED_PRECONDITION',
  412: 'FAILED_PRECONDITION',
  413: 'RESOURCE_EXHAUSTED',
  422: 'INVALID_ARGUMENT',
  429: 'RESOURCE_EXHAUSTED',
  503: 'UNAVAILABLE',
};

const byCode: Partial<Record<QueueCode, GrpcCode>> = {
  LEASE_LOST: 'FAILED_PRECONDITION',
  TASK_ENDED: 'FAILED_PRECONDITION',
  ID_CONFLICT: 'ALREADY_EXISTS',
};

/** An error as the status of a call, with the code of the REST API as ErrorInfo.reason. */
export function statusOf(error: unknown, log: Log): GrpcStatus {
  if (error instanceof Refusal && Object.hasOwn(queueCodes, error.code)) {
    const reason = error.code as QueueCode;
    const twin = byHttpStatus[queueCodes[reason].status] ?? 'INTERNAL';
    const { members, retryAfterMs } = error.extra;
    const cause = members?.['reason'];
    const metadata = typeof cause === 'string' ? { reason: cause } : {};
    return withInfo(errorStatus(byCode[reason] ?? twin, error.detail), reason, {
      metadata,
      retryAfterMs,
    });
  }
  if (error instanceof StorageUnavailable) {
    const detail = 'The task store does not respond; retry, a submit with the same id.';
    return withInfo(errorStatus('UNAVAILABLE', detail), 'STORAGE_UNAVAILABLE');
  }
  log.error({ err: error }, `gRPC call failed: ${messageOf(error)}`);
  return withInfo(errorStatus('INTERNAL', 'Internal error'), 'INTERNAL');
}

/** REST has no deadline of the caller, so its list of codes has no reason for one. */
type Reason = QueueCode | 'DEADLINE_EXCEEDED';

const reasons: Readonly<Record<TransportFault['kind'], Reason>> = {
  unknown_method: 'NOT_FOUND',
  invalid_request: 'INVALID_TASK',
  too_large: 'PAYLOAD_TOO_LARGE',
  out_of_memory: 'RATE_LIMITED',
  too_late: 'DEADLINE_EXCEEDED',
};

/** Gives errors of the transport their ErrorInfo as well. */
export const abortReasons: CallAbortReasons = {
  cancelled: () => new Error('The caller cancelled the call.'),
  expired: () => {
    const reason = new Error('The deadline of the call passed.');
    const status = errorStatus('DEADLINE_EXCEEDED', reason.message);
    return { reason, status: withInfo(status, 'DEADLINE_EXCEEDED') };
  },
  noConnection: () => withInfo(errorStatus('UNAVAILABLE', connectionsExceeded), 'RATE_LIMITED'),
  explain: (status, { kind }) => withInfo(status, reasons[kind]),
};

interface MoreInfo {
  metadata?: Record<string, string>;
  retryAfterMs?: number | undefined;
}

// Clients limit the size of headers, which carry the message.
const maxMessageLength = 400;

function withInfo(
  { code, message: whole }: GrpcStatus,
  reason: Reason,
  { metadata = {}, retryAfterMs }: MoreInfo = {},
): GrpcStatus {
  const message = whole.slice(0, maxMessageLength).toWellFormed();
  const info = create(ErrorInfoSchema, { reason, domain, metadata });
  const details: Any[] = [anyPack(ErrorInfoSchema, info)];
  if (retryAfterMs !== undefined) {
    const retry = create(RetryInfoSchema, { retryDelay: durationFromMs(retryAfterMs) });
    details.push(anyPack(RetryInfoSchema, retry));
  }
  const status = create(StatusSchema, { code, message, details });
  return { code, message, details: Buffer.from(toBinary(StatusSchema, status)) };
}
