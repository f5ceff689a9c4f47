import type { QueueSchema } from '@millrace/contract/queue';
import { expect, test } from 'vitest';
import { responseMessage, attemptErrorText, lastErrorText } from './task-view.js';

const detail = 'No coding agent is on this machine: run `ctl backend rescan`.';

test.each([
  [null, ''],
  ['', ''],
  [JSON.stringify({ title: 'Conflict', detail, error: detail }), detail],
  [JSON.stringify({ error: { code: 7, message: 'no "mill" here' } }), 'no "mill" here'],
  ['{"title":"Conflict","detail":"cut off in the mid', 'Conflict'],
  ['{"n":1}', ''],
  ['try later\nand more', 'try later'],
  ['<!doctype html><title>502</title>', ''],
  ['x'.repeat(500), 'x'.repeat(300)],
])('of the answer %j the words are %j', (snippet, words) => {
  expect(responseMessage(snippet)).toBe(words);
});

const attempt = {
  error_type: 'HTTP_4XX',
  http_status: 409,
  message: 'The callback answered with HTTP 409',
  ended_at: '2026-01-15T09:30:00.000Z',
  response_snippet: JSON.stringify({ detail }),
} as QueueSchema<'Attempt'>;

test('a failure is reported with what the handler said of it', () => {
  const text = `HTTP_4XX 409: The callback answered with HTTP 409: ${detail}`;
  expect(attemptErrorText(attempt)).toBe(text);
  const { error_type, http_status, message, ended_at: at } = attempt;
  const last_error = { error_type, http_status, message, at };
  const task = (more: object) => ({ last_error, attempts: [attempt], ...more }) as never;
  expect(lastErrorText(task({}))).toBe(text);
  expect(lastErrorText(task({ attempts: [] }))).toBe(text.slice(0, -detail.length - 2));
  expect(lastErrorText(task({ last_error: null }))).toBe('');
});

test('words that the queue has told already are not told twice', () => {
  expect(attemptErrorText({ ...attempt, message: `It said: ${detail}` })).toBe(
    `HTTP_4XX 409: It said: ${detail}`,
  );
  expect(attemptErrorText({ ...attempt, error_type: null, http_status: 200 })).toBe('200');
});
