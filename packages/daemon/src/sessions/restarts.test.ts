import { expect, test } from 'vitest';
import type { Entry } from '../core/session.js';
import { delayFor, maxAutoRestarts } from './restarts.js';

const now = Date.UTC(2026, 0, 15, 9);

function entry(session: object, handle: object = {}): Entry {
  return {
    session: {
      auto_restart: true,
      status: 'errored',
      limited_until: null,
      status_since: new Date(now).toISOString(),
      ...session,
    },
    handle: { isStopping: false, autoRestarts: 0, startedAt: now - 1_000, ...handle },
  } as Entry;
}

test('only what asks for it and went wrong is restarted', () => {
  expect(delayFor(entry({}), now)).toBeGreaterThan(0);
  expect(delayFor(entry({ status: 'orphaned' }), now)).toBeGreaterThan(0);
  expect(delayFor(entry({ auto_restart: false }), now)).toBeUndefined();
  expect(delayFor(entry({ status: 'done' }), now)).toBeUndefined();
  expect(delayFor(entry({}, { isStopping: true }), now)).toBeUndefined();
});

test('restarts: the delay grows up to a maximum', () => {
  const delays = Array.from({ length: maxAutoRestarts }, (_, autoRestarts) =>
    delayFor(entry({}, { autoRestarts }), now),
  ) as number[];
  delays.slice(1).forEach((delay, n) => expect(delay).toBe(2 * delays[n]!));
  expect(delayFor(entry({}, { autoRestarts: maxAutoRestarts }), now)).toBe('never');
});

test('restarts: a long run resets the count', () => {
  const handle = { autoRestarts: maxAutoRestarts, startedAt: now - 3_600_000 };
  expect(delayFor(entry({}, handle), now)).toBe(delayFor(entry({}), now));
});

test('not before a limit is over', () => {
  const limited_until = new Date(now + 3_600_000).toISOString();
  expect(delayFor(entry({ status: 'rate_limited', limited_until }), now)).toBe(3_600_000);
});
