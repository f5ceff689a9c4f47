import type { DaemonSchema } from '@millrace/contract/daemon';
import { expect, test } from 'vitest';
import { explainSession } from './explain-session.js';

type Session = DaemonSchema<'Session'>;

const settings = {
  warn: 200_000,
  critical: 400_000,
  guard: true,
  autoCompact: true,
  forceCompact: false,
};

const session = (part: Partial<Session>): Session =>
  ({
    status: 'working',
    status_reason: 'output a moment ago',
    exit_code: null,
    last_error: null,
    auto_restart: false,
    restart_count: 0,
    limited_until: null,
    context_tokens: 1000,
    context_state: 'ok',
    force_compact: 'inherit',
    pipeline_id: null,
    job_id: null,
    parent_id: null,
    driver: 'tmux',
    ...part,
  }) as Session;

const answer = (part: Partial<Session>, question: RegExp, change: Partial<typeof settings> = {}) =>
  explainSession(session(part), { ...settings, ...change }).find((one) =>
    question.test(one.question),
  )?.answer;

test('explainSession: status with its evidence', () => {
  expect(answer({ status: 'waiting_for_input', status_reason: 'it asks: Go on?' }, /^Why/)).toBe(
    'It asks a question or for permission. Answer below. Evidence: it asks: Go on?',
  );
  expect(answer({ status_reason: null }, /^Why/)).toContain('No evidence yet.');
});

test('explainSession: error, exit code and restarts of an ended agent', () => {
  const text = answer(
    { status: 'errored', exit_code: 3, last_error: 'no such file', restart_count: 2 },
    /before/,
  );
  expect(text).toBe('no such file. Exit code 3. Restarted 2 times so far.');
  expect(answer({}, /before/)).toBe(undefined);
});

test('explainSession: unknown context is not 0', () => {
  expect(answer({ context_tokens: null, context_state: null }, /context/)).toContain('Unknown');
  expect(answer({ context_tokens: 0 }, /context/)).toContain('0 tokens');
});

test('explainSession: the override of an agent wins over the guard settings', () => {
  const critical = /critical/;
  expect(answer({}, critical)).toContain('nothing happens. (tokens.force_compact is off)');
  expect(answer({}, critical, { forceCompact: true })).toContain('is interrupted');
  expect(answer({ force_compact: 'off' }, critical, { forceCompact: true })).toContain(
    'nothing happens. (set for this agent)',
  );
  expect(answer({ force_compact: 'on' }, critical)).toContain('is interrupted');
  expect(answer({}, critical, { autoCompact: false })).toContain('tokens.auto_compact is off');
  expect(answer({}, critical, { guard: false })).toBe('Nothing: tokens.guard is off.');
  expect(answer({ status: 'done' }, critical)).toBe(undefined);
});
