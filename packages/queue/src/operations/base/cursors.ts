import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Clock } from '@millrace/kit/clock';
import { fail } from './refusal.js';

/** The list that a cursor belongs to; for any other list it is stale. */
export interface CursorScope {
  list: 'dlq' | 'audit' | 'tasks' | 'schedules';
  /** All parameters of the request except the page size. */
  filter: Readonly<Record<string, string | number | undefined>>;
  /** Distinguishes a queue from a later one with the same name. */
  incarnation?: string | undefined;
}

export const defaultPageSize = 50;
const version = 'c1';
const lifetimeMs = 24 * 3_600_000;
const macBytes = 16;
const maxCursorLength = 1_024;

/**
 * Pagination cursors. They are signed, so that clients cannot change them, and bound to one list.
 */
export class Cursors {
  readonly #key: Uint8Array;
  readonly #clock: Clock;

  constructor(key: Uint8Array, clock: Clock) {
    this.#key = key;
    this.#clock = clock;
  }

  seal(scope: CursorScope, place: readonly (string | number)[]): string {
    const text = JSON.stringify([this.#clock.now(), ...place]);
    const body = `${version}.${Buffer.from(text).toString('base64url')}`;
    return `${body}.${this.#mac(body, scope).toString('base64url')}`;
  }

  /** The position; undefined for a cursor that is expired, foreign or malformed. */
  open(scope: CursorScope, cursor: string): readonly unknown[] | undefined {
    if (cursor.length > maxCursorLength) return undefined;
    const end = cursor.lastIndexOf('.');
    if (end === -1 || !cursor.startsWith(`${version}.`)) return undefined;
    const body = cursor.slice(0, end);
    // The base64 decoder is lenient, so the text is compared and not the decoded bytes.
    const given = Buffer.from(cursor.slice(end + 1));
    const right = Buffer.from(this.#mac(body, scope).toString('base64url'));
    if (given.length !== right.length || !timingSafeEqual(given, right)) return undefined;
    const text = Buffer.from(body.slice(version.length + 1), 'base64url').toString();
    const [madeAt, ...place] = JSON.parse(text) as [number, ...unknown[]];
    return this.#clock.now() - madeAt > lifetimeMs ? undefined : place;
  }

  #mac(body: string, { list, filter, incarnation }: CursorScope): Buffer {
    const keys = Object.keys(filter).filter((key) => filter[key] !== undefined);
    const pairs = keys.toSorted().map((key) => [key, filter[key]]);
    const text = JSON.stringify([list, incarnation ?? null, pairs]);
    return createHmac('sha256', this.#key)
      .update(`${body}\n${text}`)
      .digest()
      .subarray(0, macBytes);
  }
}

export function staleCursor(): Error {
  return fail(
    'STALE_CURSOR',
    'The cursor is too old, cannot be read, or was made for another list; start again without one.',
  );
}
