import type { FailureType, OutboundOutcome } from '@millrace/kit/outbound';
import { expect, test } from 'vitest';
import { interrupted, outcomeOf, unsent } from './outcome.js';

const now = Date.UTC(2026, 2, 2, 9, 15, 0);
const policy = {
  max_attempts: 15,
  initial_backoff_ms: 1_000,
  multiplier: 2,
  max_backoff_ms: 3_600_000,
  retry_statuses: [] as number[],
  dead_statuses: [] as number[],
};

function answer(
  status: number,
  headers: Record<string, string | string[]> = {},
  body = '',
): OutboundOutcome {
  const bytes = new TextEncoder().encode(body);
  const rest = { truncated: false, remoteIp: '203.0.113.7', durationMs: 3 };
  return { ok: true, status, headers, body: bytes, ...rest };
}

const read = (outcome: OutboundOutcome, changes: Partial<typeof policy> = {}) =>
  outcomeOf(outcome, { ...policy, ...changes }, now);

test.each([200, 201, 202, 204, 206, 299])('%i is a success', (status) => {
  expect(read(answer(status, { 'retry-after': '5', 'x-queue-retry': 'never' }, 'fine'))).toEqual({
    kind: 'succeeded',
    httpStatus: status,
    errorType: null,
    message: null,
    mayRetry: true,
    isDeferred: false,
    retryAfterMs: null,
    snippet: 'fine',
    remoteIp: '203.0.113.7',
    health: 'good',
  });
});

test('202 with X-Queue-Async means that the handler goes on by itself', () => {
  expect(read(answer(202, { 'x-queue-async': 'true' }))).toMatchObject({ kind: 'async' });
  expect(read(answer(202, { 'x-queue-async': ' True' }))).toMatchObject({ kind: 'async' });
  expect(read(answer(202, { 'x-queue-async': 'yes' }))).toMatchObject({ kind: 'succeeded' });
  expect(read(answer(200, { 'x-queue-async': 'true' }))).toMatchObject({ kind: 'succeeded' });
  expect(read(answer(500, { 'x-queue-async': 'true' }))).toMatchObject({ kind: 'failed' });
});

const statuses: [number, string, boolean, 'good' | 'bad'][] = [
  [300, 'REDIRECT', true, 'good'],
  [302, 'REDIRECT', true, 'good'],
  [307, 'REDIRECT', true, 'good'],
  [399, 'REDIRECT', true, 'good'],
  [400, 'HTTP_4XX', false, 'good'],
  [401, 'HTTP_4XX', false, 'good'],
  [404, 'HTTP_4XX', false, 'good'],
  [408, 'TIMEOUT', true, 'bad'],
  [409, 'HTTP_4XX', false, 'good'],
  [410, 'HTTP_4XX', false, 'good'],
  [425, 'HTTP_4XX', true, 'good'],
  [429, 'RATE_LIMITED', true, 'bad'],
  [499, 'HTTP_4XX', false, 'good'],
  [500, 'HTTP_5XX', true, 'bad'],
  [502, 'HTTP_5XX', true, 'bad'],
  [503, 'UNAVAILABLE', true, 'bad'],
  [504, 'HTTP_5XX', true, 'bad'],
  [599, 'HTTP_5XX', true, 'bad'],
];

test.each(statuses)('%i is %s, retried: %s, target: %s', (status, errorType, mayRetry, health) => {
  const outcome = read(answer(status));
  expect(outcome).toMatchObject({
    kind: 'failed',
    httpStatus: status,
    errorType,
    mayRetry,
    health,
  });
  expect(outcome.message).toContain(String(status));
});

test.each([100, 199, 600, 999])('%i is not a valid HTTP status, and is retried', (status) => {
  expect(read(answer(status))).toMatchObject({
    kind: 'failed',
    httpStatus: null,
    errorType: 'NETWORK_ERROR',
    mayRetry: true,
    health: 'bad',
  });
});

test('the lists of the queue override what a status means, for every failing status', () => {
  for (let status = 300; status < 600; status++) {
    expect(read(answer(status), { dead_statuses: [status] }).mayRetry).toBe(false);
    expect(read(answer(status), { retry_statuses: [status] }).mayRetry).toBe(true);
  }
});

test('X-Queue-Retry: never ends the task whatever the failing status', () => {
  for (const status of [302, 404, 429, 500, 503]) {
    const outcome = read(answer(status, { 'x-queue-retry': 'Never' }), {
      retry_statuses: [status],
    });
    expect(outcome).toMatchObject({ kind: 'failed', mayRetry: false });
  }
  expect(read(answer(500, { 'x-queue-retry': 'later' })).mayRetry).toBe(true);
});

test('X-Queue-Defer: true asks for the same attempt later, where there is a later', () => {
  const later = { 'x-queue-defer': 'True', 'retry-after': '60' };
  expect(read(answer(429, later))).toMatchObject({
    isDeferred: true,
    retryAfterMs: 60_000,
    health: 'good',
  });
  expect(read(answer(503, { 'x-queue-defer': 'no' }))).toMatchObject({
    isDeferred: false,
    health: 'bad',
  });
  for (const final of [answer(404, later), answer(500, { ...later, 'x-queue-retry': 'never' })]) {
    expect(read(final)).toMatchObject({ isDeferred: false, mayRetry: false });
  }
  expect(read(answer(200, later))).toMatchObject({ kind: 'succeeded', isDeferred: false });
});

test('the handler names its own error type, if it is one', () => {
  const typeOf = (value: string | string[]) =>
    read(answer(500, { 'x-queue-error-type': value })).errorType;
  expect(typeOf('QUOTA_EXCEEDED')).toBe('QUOTA_EXCEEDED');
  expect(typeOf('mail/no-such.box:1')).toBe('mail/no-such.box:1');
  expect(typeOf(['FIRST', 'SECOND'])).toBe('FIRST');
  expect(typeOf('x'.repeat(128))).toBe('x'.repeat(128));
  for (const bad of ['', '-a', 'a b', 'ä', 'x'.repeat(129)]) expect(typeOf(bad)).toBe('HTTP_5XX');
});

test('X-Queue-Error-Message of a failure is its message, percent-decoded and cut', () => {
  const messageOf = (status: number, value: string | string[]) =>
    read(answer(status, { 'x-queue-error-message': value })).message;
  expect(messageOf(422, 'no%20such%20mailbox%3A%20%C3%BC%00')).toBe('no such mailbox: ü\u{fffd}');
  expect(messageOf(500, ['first', 'second'])).toBe('first');
  expect(messageOf(500, '100% full')).toBe('100% full');
  expect(messageOf(500, 'x'.repeat(3_000))).toHaveLength(1_024);
  expect(messageOf(500, '')).toBe('The callback answered with HTTP 500');
  expect(messageOf(200, 'unused')).toBeNull();
});

test('Retry-After of a failure is returned, an invalid one is ignored', () => {
  expect(read(answer(503, { 'retry-after': '7' })).retryAfterMs).toBe(7_000);
  expect(read(answer(302, { 'retry-after': '7' })).retryAfterMs).toBe(7_000);
  expect(read(answer(503, { 'retry-after': 'later' })).retryAfterMs).toBeNull();
  expect(read(answer(503)).retryAfterMs).toBeNull();
});

test('the snippet is the first 2 KiB of the body as text', () => {
  expect(read(answer(500, {}, 'x'.repeat(5_000))).snippet).toBe('x'.repeat(2_048));
});

const failures: FailureType[] = [
  'TIMEOUT',
  'CONNECTION_REFUSED',
  'CONNECTION_RESET',
  'DNS_FAILURE',
  'TLS_FAILURE',
  'NETWORK_ERROR',
  'TARGET_BLOCKED',
];

test.each(failures)('%s is retried and speaks against the target', (errorType) => {
  const outcome = read({ ok: false, errorType, message: 'm'.repeat(3_000), durationMs: 1 });
  expect(outcome).toEqual({
    kind: 'failed',
    httpStatus: null,
    errorType,
    message: 'm'.repeat(1_024),
    mayRetry: true,
    isDeferred: false,
    retryAfterMs: null,
    snippet: null,
    remoteIp: null,
    health: 'bad',
  });
});

test('the dialled address is recorded even without a response', () => {
  const failure = {
    ok: false,
    errorType: 'CONNECTION_REFUSED',
    message: 'no',
    durationMs: 1,
  } as const;
  expect(read({ ...failure, remoteIp: '203.0.113.9' }).remoteIp).toBe('203.0.113.9');
});

test('an aborted callback says nothing about the target', () => {
  const aborted = { ok: false, errorType: 'ABORTED', message: 'x', durationMs: 1 } as const;
  expect(read(aborted)).toEqual(interrupted());
  expect(interrupted()).toMatchObject({ kind: 'interrupted', errorType: null, health: 'unknown' });
});

test('a callback that could not be made is retried and says nothing about the target', () => {
  expect(unsent('bad header')).toMatchObject({
    kind: 'failed',
    errorType: 'INTERNAL',
    message: 'bad header',
    mayRetry: true,
    health: 'unknown',
  });
});
