import { messageOf, systemCode } from '@millrace/kit/errors';
import { StorageUnavailable } from '../../port/task-store.js';

/** Serialization failure or deadlock: the transaction can be tried again. */
export function isConflict(error: unknown): boolean {
  const code = systemCode(error);
  return code === '40001' || code === '40P01';
}

/** The statement was cancelled by its timeout. */
export function isTimeout(error: unknown): boolean {
  return systemCode(error) === '57014';
}

/** SQLSTATE or system code: away, full, starting, read only, too slow. */
const awayCodes = /^(?:(?:08|53|57|58|28)[0-9A-Z]{3}|25006|25P03|55P03|E[A-Z_]{3,})$/;
/** Errors of the driver have no code. */
const awayMessages = /connection|timeout|closed|terminated|not queryable/i;

/** The request is fine, but the database cannot serve it now. */
export function isAway(error: unknown): boolean {
  const code = systemCode(error);
  return code ? awayCodes.test(code) : awayMessages.test(messageOf(error));
}

export function unavailable(error: unknown): StorageUnavailable {
  if (error instanceof StorageUnavailable) return error;
  const message = `PostgreSQL does not respond: ${messageOf(error)}`;
  return new StorageUnavailable(message, { cause: error });
}
