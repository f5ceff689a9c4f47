import { createHash } from 'node:crypto';
import type { Json } from '../value/documents.js';
import { refuse } from '../value/refusal.js';
import { conditionText, type Condition } from './filter.js';
import { isStoredId } from './ids.js';
import type { Position, SortOrder } from './sort.js';
import { canonicalText, checkJson } from './values.js';

export const cursorLifetimeMs = 24 * 60 * 60 * 1000;

const version = 1;
const startOver = 'start again without it';

/** Identifies the query: a cursor continues this query and no other. */
export function fingerprintOf(collection: string, condition: Condition, order: SortOrder): string {
  const steps = order.keys.map((key): Json => [key.path.text, key.desc]);
  const text = canonicalText([collection, conditionText(condition), steps, order.idDesc]);
  return createHash('sha256').update(text).digest('base64url').slice(0, 22);
}

/** `[version, issued at, fingerprint, keys, id]`; a key is `[value]`, or `[]` for a missing one. */
export function writeCursor(position: Position, fingerprint: string, now: number): string {
  const keys = position.keys.map((key) => (key === undefined ? [] : [key]));
  const text = JSON.stringify([version, now, fingerprint, keys, position.id]);
  return Buffer.from(text).toString('base64url');
}

/** The position after which the query continues. */
export function readCursor(
  cursor: string,
  fingerprint: string,
  order: SortOrder,
  now: number,
): Position {
  const [issuedAt, madeFor, position] = decode(cursor);
  if (madeFor !== fingerprint || position.keys.length !== order.keys.length) {
    throw refuse(
      'BAD_CURSOR',
      `The cursor belongs to another query: send the filter and order it came with, or ${startOver}.`,
    );
  }
  if (now - issuedAt > cursorLifetimeMs) {
    throw refuse('CURSOR_EXPIRED', `The cursor is older than 24 hours; ${startOver}.`);
  }
  return position;
}

function decode(cursor: string): [issuedAt: number, fingerprint: string, position: Position] {
  const unreadable = () => refuse('BAD_CURSOR', `The cursor is not readable; ${startOver}.`);
  let parts: unknown;
  try {
    parts = JSON.parse(Buffer.from(cursor, 'base64url').toString());
  } catch {
    throw unreadable();
  }
  if (!Array.isArray(parts) || parts.length !== 5) throw unreadable();
  const [madeBy, issuedAt, fingerprint, keys, id] = parts as unknown[];
  if (madeBy !== version || typeof issuedAt !== 'number' || typeof fingerprint !== 'string') {
    throw unreadable();
  }
  if (!Array.isArray(keys) || typeof id !== 'string' || !isStoredId(id)) throw unreadable();
  const values = keys.map((key: unknown) => {
    if (!Array.isArray(key) || key.length > 1) throw unreadable();
    return key.length === 0 ? undefined : checkJson(key[0], unreadable);
  });
  return [issuedAt, fingerprint, { keys: values, id }];
}
