import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  isEnded,
  judge,
  starting,
  withFacts,
  withStatus,
  type Evidence,
  type Exit,
  type Session,
  type Sign,
} from './session.js';

const start = Date.UTC(2026, 0, 15, 9, 0);
const now = start + 60_000;
const stamp = (time: number) => new Date(time).toISOString();

const fresh: Session = {
  id: '01K9ZQ4M7T3V8X2B6C0D5E1F9G',
  name: 'agent',
  status: 'working',
  backend: 'claude',
  backend_session_id: null,
  model: null,
  driver: 'tmux',
  repo: null,
  worktree: null,
  branch: null,
  workdir: '/src/mill',
  prompt: 'x',
  tags: [],
  parent_id: null,
  pid: 100,
  exit_code: null,
  auto_restart: false,
  restart_count: 0,
  pipeline_id: null,
  job_id: null,
  context_tokens: null,
  context_state: null,
  force_compact: 'inherit',
  limited_until: null,
  last_error: null,
  status_since: stamp(start),
  status_reason: 'it was given its prompt',
  created_at: stamp(start),
  updated_at: stamp(start),
};

const working: Sign = { status: 'working', reason: 'busy' };
const idle: Sign = { status: 'idle', reason: 'empty' };
const waiting: Sign = { status: 'waiting_for_input', reason: 'it asks' };
const exit: Exit = {
  code: 0,
  signal: null,
  wasStopped: false,
  isLost: false,
  limit: null,
  failure: null,
};

describe('evidence', () => {
  test('of each kind outranks those behind it', () => {
    const order: [keyof Evidence, Sign][] = [
      ['event', { status: 'working', reason: 'event' }],
      ['transcript', { status: 'idle', reason: 'transcript' }],
      ['pane', { status: 'waiting_for_input', reason: 'pane' }],
      ['staleness', { status: 'working', reason: 'staleness' }],
    ];
    for (let from = 0; from < order.length; from++) {
      const evidence = Object.fromEntries(order.slice(from)) as Evidence;
      const [, first] = order[from]!;
      expect(judge(fresh, evidence, now)).toMatchObject({
        status: first.status,
        status_reason: first.reason,
      });
      expect(judge(fresh, { ...evidence, exit }, now).status).toBe('done');
    }
  });

  test('that is not there changes nothing: unknown never means idle', () => {
    expect(judge(fresh, {}, now)).toBe(fresh);
    expect(judge(fresh, { facts: {} }, now)).toBe(fresh);
    expect(judge(fresh, { facts: { model: null } }, now)).toBe(fresh);
  });

  test('of another status stamps its time and says its reason; of the same one keeps the time', () => {
    const waitingSession = judge(fresh, { pane: waiting }, now);
    expect(waitingSession).toMatchObject({ status: 'waiting_for_input', status_reason: 'it asks' });
    expect([waitingSession.status_since, waitingSession.updated_at]).toEqual([
      stamp(now),
      stamp(now),
    ]);
    const later = judge(waitingSession, { pane: { ...waiting, reason: 'it asks more' } }, now + 5);
    expect([later.status_since, later.updated_at]).toEqual([stamp(now), stamp(now + 5)]);
    expect(judge(later, { pane: { ...waiting, reason: 'it asks more' } }, now + 9)).toBe(later);
  });

  test('beside the status is taken in', () => {
    const facts = { model: 'opus', context_tokens: 9, context_state: 'ok' as const };
    const informed = judge(fresh, { facts }, now);
    expect(informed).toMatchObject({ ...facts, status: 'working', updated_at: stamp(now) });
  });
});

describe('the end of a process', () => {
  test.each([
    [exit, 'done', null, 'its process exited with code 0'],
    [{ ...exit, code: 3 }, 'errored', 'its process exited with code 3', 'its process exited with'],
    [
      { ...exit, code: 3, failure: 'no disk' },
      'errored',
      'no disk',
      'its process exited with code',
    ],
    [{ ...exit, failure: 'is_error' }, 'errored', 'is_error', 'its process exited with code 0'],
    [{ ...exit, code: null, signal: 'SIGKILL' }, 'errored', 'its process was killed', 'by SIGKILL'],
    [{ ...exit, code: null, isLost: true }, 'orphaned', 'left no exit code', 'its process is gone'],
    [{ ...exit, code: 143, wasStopped: true }, 'done', null, 'it was stopped'],
    [{ ...exit, code: null, isLost: true, wasStopped: true }, 'done', null, 'it was stopped'],
  ])('%o', (how, status, error, reason) => {
    const over = judge(fresh, { exit: how, pane: idle }, now);
    expect(over).toMatchObject({ status, pid: null, exit_code: how.code });
    expect(over.status_reason).toContain(reason);
    if (error === null) expect(over.last_error).toBeNull();
    else expect(over.last_error).toContain(error);
    expect(isEnded(over)).toBe(true);
    expect(judge(over, { pane: working }, now + 1)).toBe(over);
  });

  test('at a limit is no failure', () => {
    const limit = { reason: 'usage limit reached', until: now + 3_600_000 };
    const over = judge(fresh, { exit: { ...exit, code: 1, limit } }, now);
    expect(over).toMatchObject({
      status: 'rate_limited',
      limited_until: stamp(now + 3_600_000),
      last_error: 'usage limit reached',
      pid: null,
    });
    expect(isEnded(over)).toBe(true);
  });
});

describe('a limit of an agent that runs', () => {
  const limited: Sign = {
    status: 'rate_limited',
    reason: 'usage limit reached',
    limitedUntil: now + 1_000,
  };

  test('holds against an empty prompt until it is over', () => {
    const held = judge(fresh, { pane: limited }, now);
    expect(held).toMatchObject({ status: 'rate_limited', limited_until: stamp(now + 1_000) });
    expect(isEnded(held)).toBe(false);
    expect(judge(held, { pane: limited }, now + 1)).toBe(held);
    expect(judge(held, { pane: idle }, now + 999)).toBe(held);
    const over = judge(held, { pane: idle }, now + 1_000);
    expect(over).toMatchObject({ status: 'idle', limited_until: null });
    const answered = judge(held, { transcript: idle, pane: limited }, now + 1);
    expect(answered).toMatchObject({ status: 'idle', limited_until: null });
  });

  test('ends when it works again', () => {
    const held = judge(fresh, { pane: limited }, now);
    expect(judge(held, { pane: working }, now + 1)).toMatchObject({
      status: 'working',
      limited_until: null,
    });
  });
});

test('a start forgets how the process before it ended', () => {
  const over = judge(fresh, { exit: { ...exit, code: 3 } }, now);
  expect(starting(over, 'again', now + 1)).toMatchObject({
    status: 'spawning',
    status_reason: 'again',
    exit_code: null,
    pid: null,
    status_since: stamp(now + 1),
  });
});

test('what is the same already makes no new session', () => {
  expect(withStatus(fresh, 'working', 'it was given its prompt', now)).toBe(fresh);
  expect(withFacts(fresh, { pid: 100, model: null }, now)).toBe(fresh);
});

const anySign = fc.record({
  status: fc.constantFrom('working', 'waiting_for_input', 'idle', 'rate_limited'),
  reason: fc.string({ minLength: 1 }),
}) as fc.Arbitrary<Sign>;
const anyExit: fc.Arbitrary<Exit> = fc.record({
  code: fc.option(fc.nat(255)),
  signal: fc.option(fc.constant('SIGTERM')),
  wasStopped: fc.boolean(),
  isLost: fc.boolean(),
  limit: fc.option(fc.record({ reason: fc.string(), until: fc.constant(now + 1) })),
  failure: fc.option(fc.string()),
});
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const anyEvidence: fc.Arbitrary<Evidence> = fc.record({
  exit: maybe(anyExit),
  event: maybe(anySign),
  transcript: maybe(anySign),
  pane: maybe(anySign),
  staleness: maybe(anySign),
});

test('whatever is found out, a session stays whole', () => {
  fc.assert(
    fc.property(fc.array(anyEvidence, { maxLength: 12 }), (observations) => {
      let session = fresh;
      observations.forEach((evidence, step) => {
        const before = session;
        session = judge(before, evidence, now + step);
        if (session === before) return;
        expect(isEnded(before)).toBe(false);
        expect(session.status_reason).not.toBeNull();
        expect(session.updated_at).toBe(stamp(now + step));
        const isNew = session.status !== before.status;
        expect(session.status_since).toBe(isNew ? stamp(now + step) : before.status_since);
        expect(session.pid === null).toBe(isEnded(session));
        if (session.status === 'idle') expect(session.limited_until).toBeNull();
      });
    }),
  );
});
