import { fromBinary, type DescMessage, type MessageShape } from '@bufbuild/protobuf';
import { anyUnpack, durationMs } from '@bufbuild/protobuf/wkt';
import { grpcCodes, type DbReason, type GrpcCode } from '@millrace/contract/db-reasons';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
  StatusSchema,
  type Status,
} from '@millrace/contract/grpc';
import { Refusal, type FieldError, type RefusalExtra } from '@millrace/kit/errors';
import type { CallError } from '@millrace/wire/grpc-client';

/** Why a call failed: a reason of the database, or the gRPC code if the server did not respond. */
export type CallReason = DbReason | GrpcCode;

/** A failed call. `code` is the reason; `extra` has the metadata from the server. */
export class CallRefusal extends Refusal<CallReason> {
  constructor(
    code: CallReason,
    detail: string,
    extra: RefusalExtra,
    readonly grpcCode: GrpcCode,
    /** False when the connection failed, so that no server sent the error. */
    readonly isAnswer: boolean,
  ) {
    super(code, detail, extra);
  }
}

const codeNames = new Map<number, GrpcCode>(
  Object.entries(grpcCodes).map(([name, number]) => [number, name as GrpcCode]),
);

/** Converts the error of a call. `url` names the server. */
export function toRefusal(error: CallError, url: string): CallRefusal {
  const grpcCode = codeNames.get(error.code) ?? 'UNKNOWN';
  const status = statusOf(error);
  const info = status && detailOf(status, ErrorInfoSchema);
  if (!status || !info) {
    const detail = transportDetail(grpcCode, error.details, url);
    return new CallRefusal(grpcCode, detail, { cause: error }, grpcCode, false);
  }
  const retry = detailOf(status, RetryInfoSchema)?.retryDelay;
  const violations = detailOf(status, BadRequestSchema)?.fieldViolations ?? [];
  const extra: RefusalExtra = {
    members: { metadata: { ...info.metadata } },
    ...(retry ? { retryAfterMs: durationMs(retry) } : {}),
    ...(violations.length > 0 ? { errors: violations.map(fieldError) } : {}),
  };
  return new CallRefusal(info.reason as DbReason, status.message, extra, grpcCode, true);
}

/** A call that exceeded its timeout. */
export function timedOut(url: string, timeoutMs: number): CallRefusal {
  const detail = `${url} did not respond within ${timeoutMs} ms. A write may have been applied.`;
  return new CallRefusal('DEADLINE_EXCEEDED', detail, {}, 'DEADLINE_EXCEEDED', false);
}

/** A call on a connection that this client has closed. */
export function connectionClosed(): CallRefusal {
  return new CallRefusal('SHUTTING_DOWN', 'The connection is closed.', {}, 'CANCELLED', true);
}

/**
 * Whether the call may succeed later: the connection failed, the server is starting or stopping, or
 * it sent a retry delay. Whether a retry is safe is decided elsewhere.
 */
export function isPassing(error: CallRefusal): boolean {
  const { grpcCode, isAnswer, extra } = error;
  if (grpcCode === 'UNAVAILABLE') return true;
  if (isAnswer) return grpcCode === 'RESOURCE_EXHAUSTED' && extra.retryAfterMs !== undefined;
  // Streams that the server reset. Calls that this client cancels do not get here.
  return grpcCode === 'CANCELLED' || (grpcCode === 'INTERNAL' && /RST_STREAM/.test(error.detail));
}

function statusOf({ statusDetails }: CallError): Status | undefined {
  return statusDetails && fromBinary(StatusSchema, statusDetails);
}

function detailOf<Desc extends DescMessage>(
  status: Status,
  schema: Desc,
): MessageShape<Desc> | undefined {
  for (const any of status.details) {
    const found = anyUnpack(any, schema);
    if (found) return found;
  }
  return undefined;
}

function fieldError({ field, description }: { field: string; description: string }): FieldError {
  return { pointer: `/${field.replaceAll('.', '/')}`, message: description };
}

function transportDetail(code: GrpcCode, details: string, url: string): string {
  if (code === 'UNAVAILABLE') return `No response from ${url}: ${details}`;
  if (code === 'DEADLINE_EXCEEDED') return `${url} did not respond in time.`;
  return `${url} answered ${code}: ${details}`;
}
