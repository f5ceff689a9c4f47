import { messageOf, systemCode } from '@millrace/kit/errors';
import { StorageUnavailable } from '../task-store.js';

/** Two transactions stood in each other's way; the database undid one, which may try again. */
export function isConflict(error: unknown): boolean {
  const code = systemCode(error);
  return code === '40001' || code === '40P01';
}

/** It took longer than it was given. */
export function isGivenUp(error: unknown): boolean {
  return systemCode(error) === '57014';
}

/** By SQLSTATE, or by what the system says: away, full, starting, read only, too slow. */
const awayCodes = /^(?:(?:08|53|57|58|28)[0-9A-Z]{3}|25006|25P03|55P03|E[A-Z_]{3,})$/;
/** The driver's own failures have no code. */
const awayMessages = /connection|timeout|closed|terminated|not queryable/i;

/** Nothing is wrong with what was asked: the database cannot do it now. */
export function isAway(error: unknown): boolean {
  const code = systemCode(error);
  return code ? awayCodes.test(code) : awayMessages.test(messageOf(error));
}

export function unavailable(error: unknown): StorageUnavailable {
  if (error instanceof StorageUnavailable) return error;
  const message = `PostgreSQL does not answer: ${messageOf(error)}`;
  return new StorageUnavailable(message, { cause: error });
}
