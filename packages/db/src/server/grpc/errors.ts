import { create, toBinary, type Message } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { dbErrorDomain, grpcCodes } from '@millrace/contract/db';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
  StatusSchema,
} from '@millrace/contract/grpc';
import type { GrpcStatus } from '@millrace/wire/grpc';
import { duration } from '../service/values.js';
import type { CallStatus } from '../base/status.js';

/** The final status of a gRPC call, with machine-readable details as google.rpc.Status. */
export function grpcStatus(status: CallStatus): GrpcStatus {
  const code = grpcCodes[status.code];
  const { reason, message, metadata, retryAfterMs, violations } = status;
  const info = create(ErrorInfoSchema, { reason, domain: dbErrorDomain, metadata });
  const details = [anyPack(ErrorInfoSchema, info)];
  if (retryAfterMs !== undefined) {
    const retry = create(RetryInfoSchema, { retryDelay: duration(retryAfterMs) });
    details.push(anyPack(RetryInfoSchema, retry));
  }
  if (violations.length > 0) {
    const fieldViolations = violations.map(({ pointer, message: description }) => ({
      field: pointer,
      description,
    }));
    details.push(anyPack(BadRequestSchema, create(BadRequestSchema, { fieldViolations })));
  }
  const whole: Message = create(StatusSchema, { code, message, details });
  return { code, message, details: Buffer.from(toBinary(StatusSchema, whole as never)) };
}
