import { expect, test } from 'vitest';
import { cpuMsOf } from '../../../../test/support/cpu-time.js';
import { signalIn } from './signals.js';

const now = Date.UTC(2026, 0, 15, 9, 30, 0);

const failed = (id: string, stderr: string, stdout = '') =>
  signalIn({ id, succeeded: false, stdout, stderr }, now);
const succeeded = (id: string, stdout: string) =>
  signalIn({ id, succeeded: true, stdout, stderr: '' }, now);

test.each([
  ['claude', '{"status":"rejected","rateLimitType":"five_hour","resetsAt":1768473000}'],
  ['claude', "You've hit your session limit · resets 3pm"],
  ['claude', 'You’ve hit your weekly limit - resets Jan 17 at 5pm'],
  ['claude', 'Claude AI usage limit reached|1768473000'],
  ['codex', '{"rateLimitReachedType":"primary"}'],
  ['codex', "You've hit your usage limit. Try again in 3 hours 5 minutes."],
  ['gemini', '"reason": "RATE_LIMIT_EXCEEDED",'],
  ['gemini', 'TerminalQuotaError: QUOTA_EXHAUSTED'],
  ['agy', 'QUOTA_EXHAUSTED'],
  ['qwen', 'RATE_LIMIT_EXCEEDED'],
  ['opencode', 'Error: 429 Too Many Requests'],
  ['opencode', 'HTTP status 429'],
  ['mine', 'rate limit hit, slow down'],
  ['mine', 'RESOURCE_EXHAUSTED: quota'],
])('%s is rate-limited when it fails with %j', (id, text) => {
  expect(failed(id, text)?.kind).toBe('rate_limited');
  expect(failed(id, '', text)?.kind).toBe('rate_limited');
});

test.each([
  ['claude', 'Credit balance is too low'],
  ['codex', 'insufficient_quota: You exceeded your current quota, check your plan and billing'],
  ['mine', 'billing_hard_limit_reached'],
  ['mine', 'monthly spend limit reached'],
  ['mine', 'HTTP error 402'],
])('%s is out of money when it fails with %j', (id, text) => {
  expect(failed(id, text)?.kind).toBe('spend_limited');
});

test.each([
  ['claude', 'Invalid API key · Please run /login'],
  ['codex', 'Not logged in'],
  ['gemini', 'Please log in with gemini first'],
  ['mine', 'Error: 401 Unauthorized'],
])('%s has no login when it fails with %j', (id, text) => {
  expect(failed(id, text)).toMatchObject({ kind: 'unauthenticated', resetAt: undefined });
});

test.each(['Segmentation fault', 'error in line 429', 'no such file: limits.txt', ''])(
  'a failure with %j is none of these',
  (text) => {
    expect(failed('mine', text)).toBe(undefined);
  },
);

test('a refusal in place of an answer counts although the program says all went well', () => {
  expect(succeeded('claude', "You've hit your limit · resets 3pm (UTC)\n")).toEqual({
    kind: 'rate_limited',
    reason: 'usage limit reached',
    resetAt: Date.UTC(2026, 0, 15, 15),
  });
  expect(
    succeeded('claude', '{"status":"rejected","rateLimitType":"five_hour","resetsAt":1768473000}'),
  ).toMatchObject({ kind: 'rate_limited', resetAt: 1768473000000 });
  expect(succeeded('claude', 'Credit balance is too low')?.kind).toBe('spend_limited');
  expect(succeeded('claude', 'Not logged in · Please run /login')?.kind).toBe('unauthenticated');
});

test.each([
  ['gemini', 'RATE_LIMIT_EXCEEDED'],
  ['gemini', 'Error: RATE_LIMIT_EXCEEDED: slow down'],
  ['gemini', '{"error":{"code":429,"details":[{"reason":"QUOTA_EXHAUSTED"}]}}'],
  ['agy', 'QUOTA_EXHAUSTED: Your quota will reset after 2h33m12s.'],
  ['codex', '{"type":"error","rateLimitReachedType":"primary","resetsAt":1768473000}'],
  ['codex', "You've hit your usage limit."],
])('a line that only a refusal has, as %s says %j, counts too', (id, text) => {
  expect(succeeded(id, `Let me see.\n${text}\n`)?.kind).toBe('rate_limited');
});

test('success without a word is looked at like a failure', () => {
  const ending = { id: 'mine', succeeded: true, stdout: '\n', stderr: 'rate limit' };
  expect(signalIn(ending, now)?.kind).toBe('rate_limited');
});

test.each([
  'Use exponential backoff when you see 429 Too Many Requests or RESOURCE_EXHAUSTED.',
  'The message "You\'ve hit your limit" means that you have to wait.',
  "You've hit your limit · resets 3pm\nis what it prints.\nCatch it.\nThen retry.",
  'RATE_LIMIT_EXCEEDED means that you asked too often.',
  'QUOTA_EXHAUSTED is a code of the API.\nError handling is up to you.',
  'The field "rateLimitReachedType" names the limit.',
  'Unauthorized callers get a 401.',
])('an answer such as %j is an answer', (text) => {
  expect(succeeded('claude', text)).toBe(undefined);
  expect(succeeded('gemini', text)).toBe(undefined);
  expect(succeeded('codex', text)).toBe(undefined);
});

test('only the last lines are looked at', () => {
  const log = `rate limit\n${'a line\n'.repeat(40)}`;
  expect(failed('mine', log)).toBe(undefined);
  expect(failed('mine', `${'a line\n'.repeat(40)}rate limit\n\n`)?.kind).toBe('rate_limited');
});

test('the reason never quotes the program', () => {
  const text = 'ada@example.com: rate limit for key sk-123 in /home/ada';
  expect(JSON.stringify(failed('mine', text))).not.toMatch(/ada|sk-123/);
});

test('a long line is read in good time', async () => {
  const cpuMs = await cpuMsOf(() => {
    failed('claude', 'status" : "rejected '.repeat(20_000));
    failed('claude', '{'.repeat(100_000), 'error '.repeat(50_000));
    succeeded('gemini', 'error "reason": "'.repeat(20_000));
    succeeded('codex', '{"rateLimitReachedType":"'.repeat(20_000));
  });
  expect(cpuMs).toBeLessThan(1_000);
});
