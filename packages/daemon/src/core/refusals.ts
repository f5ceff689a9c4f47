import { daemonCodes } from '@millrace/contract/daemon';
import { failWith, type FieldError } from '@millrace/kit/errors';

/** A refusal of the daemon: `throw fail('BACKEND_NOT_FOUND', '...')`. */
export const fail = failWith(daemonCodes);

/** The refusal of one field of a request. */
export function invalid(field: string, message: string): Error {
  const errors: FieldError[] = [{ pointer: `/${field}`, message }];
  return fail('INVALID_REQUEST', `\`${field}\` ${message}.`, { errors });
}
