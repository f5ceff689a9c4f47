import { expect, test } from 'vitest';
import { attemptRecord, lastErrorOf, urlWithoutQuery, type ClaimedTask } from './outcome.js';
import { traceOf } from './callback-headers.js';

const lease = { token: 't', expiresAt: 45_000, nodeId: 'node-1', startedAt: 1_000, isAsync: false };
const task = { id: 'a', attempt: 2, redriveCount: 1, headers: {}, lease } as unknown as ClaimedTask;

test('an attempt lasts from its claim to its end and leaves null what does not apply', () => {
  expect(attemptRecord(task, { outcome: 'SUCCEEDED', now: 1_250, httpStatus: 200 })).toEqual({
    attempt: 2,
    redrive: 1,
    startedAt: 1_000,
    endedAt: 1_250,
    durationMs: 250,
    outcome: 'SUCCEEDED',
    errorType: null,
    message: null,
    httpStatus: 200,
    retryAfterMs: null,
    nextAttemptAt: null,
    responseSnippet: null,
    url: null,
    remoteIp: null,
    nodeId: 'node-1',
    traceId: traceOf({}, 't').traceId,
  });
});

test('attempt record: a clock set back does not make an attempt end before it began', () => {
  const record = attemptRecord(task, { outcome: 'FAILED', now: 10, traceId: null });
  expect(record).toMatchObject({ endedAt: 1_000, durationMs: 0, traceId: null });
});

test('only a failure is a last error', () => {
  expect(lastErrorOf({ errorType: null, message: null, httpStatus: 200 }, 5)).toBeUndefined();
  const failure = { errorType: 'HTTP_5XX', message: 'x', httpStatus: 500 };
  expect(lastErrorOf(failure, 5)).toEqual({ ...failure, at: 5 });
});

test.each([
  ['https://h.example/a/b?key=1#x', 'https://h.example/a/b'],
  ['https://h.example/a#x?y', 'https://h.example/a'],
  ['https://h.example', 'https://h.example'],
])('%s is shown as %s', (url, shown) => {
  expect(urlWithoutQuery(url)).toBe(shown);
});
