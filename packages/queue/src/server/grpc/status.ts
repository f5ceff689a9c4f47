import { create, toBinary } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { Metadata, status as codes, type ServiceError } from '@grpc/grpc-js';
import { queueCodes, type QueueCode } from '@millrace/contract/queue';
import { ErrorInfoSchema, StatusSchema } from '@millrace/contract/queue-grpc';
import { messageOf, Refusal } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import { StorageUnavailable } from '../../storage/task-store.js';

const domain = 'queue.millrace';

/** The gRPC twin of an HTTP status. */
const byHttpStatus: Readonly<Record<number, codes>> = {
  401: codes.UNAUTHENTICATED,
  403: codes.PERMISSION_DENIED,
  404: codes.NOT_FOUND,
  409: codes.ABORTED,
  410: codes.FAILED_PRECONDITION,
  412: codes.FAILED_PRECONDITION,
  413: codes.RESOURCE_EXHAUSTED,
  422: codes.INVALID_ARGUMENT,
  429: codes.RESOURCE_EXHAUSTED,
  503: codes.UNAVAILABLE,
};

const byCode: Partial<Record<QueueCode, codes>> = {
  LEASE_LOST: codes.FAILED_PRECONDITION,
  ID_CONFLICT: codes.ALREADY_EXISTS,
};

/** An error as the status of a call, with the code of the REST API as ErrorInfo.reason. */
export function toServiceError(error: unknown, log: Log): Partial<ServiceError> {
  if (error instanceof Refusal && Object.hasOwn(queueCodes, error.code)) {
    const reason = error.code as QueueCode;
    const twin = byHttpStatus[queueCodes[reason].status] ?? codes.INTERNAL;
    const { reason: cause } = error.extra.members ?? {};
    const more = typeof cause === 'string' ? { reason: cause } : {};
    return statusOf(byCode[reason] ?? twin, reason, error.detail, more);
  }
  if (error instanceof StorageUnavailable) {
    const detail = 'The task store does not respond; retry, a submit with the same id.';
    return statusOf(codes.UNAVAILABLE, 'STORAGE_UNAVAILABLE', detail);
  }
  log.error({ err: error }, `gRPC call failed: ${messageOf(error)}`);
  return statusOf(codes.INTERNAL, 'INTERNAL', 'Internal error');
}

function statusOf(
  code: codes,
  reason: QueueCode,
  message: string,
  more: Record<string, string> = {},
): Partial<ServiceError> {
  const fields = { reason, domain, metadata: more };
  const info = anyPack(ErrorInfoSchema, create(ErrorInfoSchema, fields));
  const whole = create(StatusSchema, { code, message, details: [info] });
  const metadata = new Metadata();
  metadata.set('grpc-status-details-bin', Buffer.from(toBinary(StatusSchema, whole)));
  return { code, details: message, metadata };
}
