import { expect, test } from 'vitest';
import { executeOutcome, executeResult } from './outcome.js';

const outcome = (code: number, message = '', retryAfterMs: number | null = null) =>
  executeOutcome({ code, message, retryAfterMs, remoteIp: '203.0.113.7' });

test('status OK: the task succeeded', () => {
  expect(outcome(0)).toMatchObject({ kind: 'succeeded', errorType: null, health: 'good' });
});

test.each([
  [1, 'CANCELLED', 'good'],
  [2, 'UNKNOWN', 'bad'],
  [4, 'TIMEOUT', 'bad'],
  [8, 'RATE_LIMITED', 'bad'],
  [10, 'ABORTED', 'good'],
  [13, 'INTERNAL', 'bad'],
  [14, 'UNAVAILABLE', 'bad'],
])('status %i is retried as %s', (code, errorType, health) => {
  const expected = { kind: 'failed', mayRetry: true, errorType, health, httpStatus: null };
  expect(outcome(code)).toMatchObject(expected);
});

test.each([
  [3, 'INVALID_ARGUMENT'],
  [5, 'NOT_FOUND'],
  [6, 'ALREADY_EXISTS'],
  [7, 'PERMISSION_DENIED'],
  [9, 'FAILED_PRECONDITION'],
  [11, 'OUT_OF_RANGE'],
  [12, 'UNIMPLEMENTED'],
  [15, 'DATA_LOSS'],
  [16, 'UNAUTHENTICATED'],
  [99, 'GRPC_99'],
  [-1, 'GRPC_-1'],
])('status %i is dead at once as %s', (code, errorType) => {
  expect(outcome(code, 'why')).toMatchObject({
    kind: 'failed',
    mayRetry: false,
    errorType,
    message: expect.stringMatching(/^The handler answered with .*: why$/) as string,
  });
});

test.each([
  [1_500, 1_500],
  [-5, 0],
  [90_000_000, 3_600_000],
])('retry_after of %i ms is taken as %i', (given, expected) => {
  expect(outcome(14, '', given).retryAfterMs).toBe(expected);
});

test.each([
  ['', {}],
  ['{"a": 1}', { result: '{"a":1}' }],
  ['not JSON', {}],
  [JSON.stringify('x'.repeat(65_535)), { resultDropped: true }],
])('the result %j', (text, expected) => {
  expect(executeResult(Buffer.from(text))).toEqual(expected);
});
