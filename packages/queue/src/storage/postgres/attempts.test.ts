import { expect, test } from 'vitest';
import type { Attempt } from '../../core/task.js';
import { attemptsOf, attemptText } from './tasks.js';

const plain: Attempt = {
  attempt: 3,
  redrive: 1,
  startedAt: 1_763_222_400_000,
  endedAt: 1_763_222_400_250,
  durationMs: 250,
  outcome: 'SUCCEEDED',
  errorType: null,
  message: null,
  httpStatus: 200,
  retryAfterMs: null,
  nextAttemptAt: null,
  responseSnippet: null,
  url: 'http://127.0.0.1/run',
  remoteIp: '127.0.0.1',
  nodeId: 'node "a"\\\n',
  traceId: null,
};
const whole: Attempt = {
  attempt: 3,
  redrive: 1,
  startedAt: 1_763_222_400_000,
  endedAt: 1_763_222_400_250,
  durationMs: 250,
  outcome: 'FAILED',
  errorType: 'HTTP_5XX',
  message: 'äöü "quoted" \\ \u0000 \u2028',
  httpStatus: 503,
  retryAfterMs: 1_000,
  nextAttemptAt: 1_763_222_401_250,
  responseSnippet: '{"a":1},',
  url: 'http://127.0.0.1/run?a=,',
  remoteIp: '::1',
  nodeId: 'node',
  traceId: '00-4bf92f',
};
const optional = [
  'errorType',
  'message',
  'httpStatus',
  'retryAfterMs',
  'nextAttemptAt',
  'responseSnippet',
  'url',
  'remoteIp',
  'traceId',
] as const;

test('an attempt is read as it was written, whatever of it is null', () => {
  const attempts = [plain, whole];
  for (const field of optional) {
    attempts.push({ ...whole, [field]: null }, { ...plain, [field]: whole[field] });
  }
  for (const attempt of attempts) expect(attemptsOf(attemptText(attempt))).toEqual([attempt]);
  expect(attemptsOf(attempts.map(attemptText).join(','))).toEqual(attempts);
});

test('attempts that were written with their names are still read, beside others', () => {
  const text = `${JSON.stringify(plain)},${attemptText(whole)}`;
  expect(attemptsOf(text)).toEqual([plain, whole]);
  expect(attemptsOf('')).toEqual([]);
});

test('an attempt like most is short', () => {
  expect(attemptText(plain).length * 2.5).toBeLessThan(JSON.stringify(plain).length);
});

test('attempts of several nodes and targets are kept apart, in any order', () => {
  const url = 'http://127.0.0.1/other';
  const list = [plain, { ...plain, nodeId: 'b', url }, whole, plain, { ...plain, remoteIp: null }];
  const mixed = [...list, { ...plain, url: null }, ...list];
  expect(attemptsOf(mixed.map(attemptText).join(','))).toEqual(mixed);
});
