import type { ServiceError } from '@grpc/grpc-js';
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

/** Why a call failed: a reason of the database, or the gRPC code when there was no answer of it. */
export type CallReason = DbReason | GrpcCode;

/** A call that failed. Its `code` is the reason, and `extra` has what the server added. */
export class CallRefusal extends Refusal<CallReason> {
  constructor(
    code: CallReason,
    detail: string,
    extra: RefusalExtra,
    readonly grpcCode: GrpcCode,
    /** False when the connection failed and no server said so. */
    readonly isAnswer: boolean,
  ) {
    super(code, detail, extra);
  }
}

const codeNames = new Map<number, GrpcCode>(
  Object.entries(grpcCodes).map(([name, number]) => [number, name as GrpcCode]),
);

/** What the gRPC library reports, in the database's own words. `url` says of which server. */
export function toRefusal(error: ServiceError, url: string): CallRefusal {
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

/** A call that did not end in time. */
export function timedOut(url: string, timeoutMs: number): CallRefusal {
  const detail = `${url} did not respond within ${timeoutMs} ms. A write may have been applied.`;
  return new CallRefusal('DEADLINE_EXCEEDED', detail, {}, 'DEADLINE_EXCEEDED', false);
}

/** A call on a connection that was closed here. */
export function connectionClosed(): CallRefusal {
  return new CallRefusal('SHUTTING_DOWN', 'The connection is closed.', {}, 'CANCELLED', true);
}

/**
 * True when the same call may well succeed later: the connection broke, the server is starting or
 * stopping, or it said when to try again. Whether the call may be repeated is another question.
 */
export function isPassing(error: CallRefusal): boolean {
  const { grpcCode, isAnswer, extra } = error;
  if (grpcCode === 'UNAVAILABLE') return true;
  if (isAnswer) return grpcCode === 'RESOURCE_EXHAUSTED' && extra.retryAfterMs !== undefined;
  // How the library tells that the stream was reset under it. What we cancel ourselves never
  // comes this way.
  return grpcCode === 'CANCELLED' || (grpcCode === 'INTERNAL' && /RST_STREAM/.test(error.detail));
}

function statusOf(error: ServiceError): Status | undefined {
  const [bytes] = error.metadata?.get('grpc-status-details-bin') ?? [];
  return bytes instanceof Uint8Array ? fromBinary(StatusSchema, bytes) : undefined;
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
  if (code === 'UNAVAILABLE') {
    // The library wraps the reason in a sentence of its own, some of it twice.
    const reason = /Last error: (.*?)(?:\. Resolution note: .*)?$/s.exec(details)?.[1] ?? details;
    return `No response from ${url}: ${reason}`;
  }
  if (code === 'DEADLINE_EXCEEDED') return `${url} did not respond in time.`;
  return `${url} answered ${code}: ${details}`;
}
