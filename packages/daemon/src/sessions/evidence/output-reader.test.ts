import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { OutputFormat } from '../../core/session.js';
import { OutputReader } from './output-reader.js';
import { OutputLog } from '../drivers/session-files.js';

let directory: string;
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), 'mr-words-'))));
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const now = Date.UTC(2026, 0, 15, 9);
const limitRetryMs = 900_000;

function received(format: OutputFormat, ...lines: (string | object)[]): OutputReader {
  const log = new OutputLog(directory);
  for (const line of lines) {
    appendFileSync(log.path, typeof line === 'string' ? line : `${JSON.stringify(line)}\n`);
  }
  const listener = new OutputReader(log, format, 0);
  listener.listen({ isOver: true });
  return listener;
}

const verdict = (listener: OutputReader, code: number | null) =>
  listener.verdict('claude', { code, signal: null }, { now, limitRetryMs });

test('a run that ended well has nothing to tell, also when it spoke of limits', () => {
  expect(verdict(received('text', 'all done\n'), 0)).toEqual({ limit: null, failure: null });
  const answer = {
    type: 'assistant',
    message: { content: [{ type: 'text', text: 'The rate limit code is 429' }] },
  };
  const result = { type: 'result', is_error: false, result: 'The rate limit code is 429' };
  expect(verdict(received('claude-json', answer, result), 0)).toEqual({
    limit: null,
    failure: null,
  });
});

test('last words: the failure is the last line of text', () => {
  const listener = received('text', 'working\n', '\u001b[31mno disk left\u001b[0m\n', '────\n');
  expect(verdict(listener, 1)).toEqual({ limit: null, failure: 'no disk left' });
});

test('a run that says itself that it failed has failed', () => {
  const result = { type: 'result', is_error: true, result: 'ran out of turns\nand more' };
  const listener = received('claude-json', result);
  expect(verdict(listener, 0).failure).toBe('ran out of turns');
});

test('a command that nobody was there to allow is a failure that names it', () => {
  const result = {
    type: 'result',
    is_error: false,
    result: 'I could not run it.',
    permission_denials: [{ tool_name: 'Bash', tool_input: { command: 'make test' } }],
  };
  expect(verdict(received('claude-json', result), 0).failure).toBe(
    'permission denied: [Bash] make test',
  );
});

test('a retry is what the agent is doing, and an error does not empty its context', () => {
  const usage = { input_tokens: 40, output_tokens: 1 };
  const { seen } = received(
    'claude-json',
    { type: 'assistant', message: { model: 'm', content: [], usage } },
    {
      type: 'assistant',
      message: { model: '<synthetic>', content: [], usage: { input_tokens: 0 } },
    },
    {
      type: 'system',
      subtype: 'api_retry',
      attempt: 2,
      max_retries: 10,
      retry_delay_ms: 4_100,
      error_status: 529,
    },
  );
  expect(seen).toMatchObject({
    contextTokens: 40,
    doing: 'the provider answered 529; retry 2 of 10 in 4 s',
  });
});

test('a reconnect of codex is what it is doing, not how it ended', () => {
  const message = 'Reconnecting... 2/5 (stream disconnected before completion)';
  const { seen } = received('codex-json', { type: 'error', message });
  expect(seen).toEqual({ doing: `it retries: ${message}` });
});

test('the result of claude reports how much its context can hold', () => {
  const modelUsage = { a: { contextWindow: 200_000 }, 'b[1m]': { contextWindow: 1_000_000 } };
  const { seen } = received('claude-json', { type: 'result', is_error: false, modelUsage });
  expect(seen.contextWindow).toBe(1_000_000);
});

test('a limit says until when', () => {
  const resetsAt = now / 1000 + 7_200;
  const event = {
    type: 'rate_limit_event',
    rate_limit_info: { status: 'rejected', rateLimitType: 'five_hour', resetsAt },
  };
  const result = { type: 'result', is_error: true, result: "You've hit your session limit" };
  expect(verdict(received('claude-json', event, result), 1).limit?.until).toBe(now + 7_200_000);
});

test('a limit that codex names in a report is one, and none is not', () => {
  const report = (reached: string | null) =>
    received('codex-json', {
      type: 'token_count',
      rate_limits: { rateLimitReachedType: reached },
    }).verdict('codex', { code: 1, signal: null }, { now, limitRetryMs });
  expect(report(null).limit).toBeNull();
  expect(report('primary').limit).toEqual({
    reason: 'rateLimitReachedType',
    until: now + limitRetryMs,
  });
});

test('a limit without a time ends after the usual time', () => {
  const { limit } = verdict(received('text', "You've hit your session limit\n"), 1);
  expect(limit).toEqual({ reason: 'usage limit reached', until: now + limitRetryMs });
});

test('no login is a failure, not a limit', () => {
  const { limit, failure } = verdict(received('text', 'Invalid API key · Please run /login\n'), 1);
  expect([limit, failure]).toEqual([null, 'it is not logged in: not logged in']);
});

test('what is reported is remembered, and of a start before nothing is heard', () => {
  const log = new OutputLog(directory);
  const init = (id: string) =>
    `${JSON.stringify({ type: 'system', session_id: id, model: 'm' })}\n`;
  appendFileSync(log.path, init('old'));
  const listener = new OutputReader(log, 'claude-json', log.end());
  expect(listener.listen({ isOver: false })).toBe(false);
  appendFileSync(log.path, init('new').slice(0, 20));
  listener.listen({ isOver: false });
  expect(listener.seen).toEqual({});
  appendFileSync(log.path, init('new').slice(20));
  expect(listener.listen({ isOver: false })).toBe(true);
  expect(listener.seen).toMatchObject({ sessionId: 'new', model: 'm' });
});

test('last words: a folder that gemini does not trust is named with what to do', () => {
  const listener = received(
    'text',
    'Approval mode overridden to "default" because the current folder is not trusted.\n',
    'Gemini CLI is not running in a trusted directory. To proceed, either use `--skip-trust`\n',
  );
  const end = { code: 55, signal: null };
  const { failure } = listener.verdict('gemini', end, { now, limitRetryMs });
  expect(failure).toMatch(/^gemini does not trust this folder\. Add gemini to `agents\.trust_work/);
});

test('opencode: events name its session and the size of its context', () => {
  const sessionID = 'ses_1';
  const tokens = { input: 120, output: 7, reasoning: 3, cache: { read: 900, write: 40 } };
  const { seen } = received(
    'opencode-json',
    { type: 'step_start', sessionID, part: { type: 'step-start' } },
    { type: 'text', sessionID, part: { type: 'text', text: 'hello' } },
    { type: 'step_finish', sessionID, part: { type: 'step-finish', reason: 'stop', tokens } },
  );
  expect(seen).toMatchObject({ sessionId: 'ses_1', contextTokens: 1060 });
  expect(seen.result).toEqual({ isError: false, text: '' });
  const data = { message: 'too many requests', statusCode: 429 };
  const failed = received('opencode-json', { type: 'error', sessionID, error: { data } });
  expect(failed.seen.result?.text).toBe('API error 429: too many requests');
  expect(failed.verdict('opencode', { code: 1, signal: null }, { now, limitRetryMs })).toEqual({
    limit: expect.objectContaining({ until: now + limitRetryMs }),
    failure: null,
  });
});
