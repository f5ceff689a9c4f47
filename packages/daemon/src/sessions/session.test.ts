import assert from 'node:assert/strict';
import { describe, expect, test } from 'vitest';
import { isEnded, type Entry, type Handle, type Session, type Sign } from '../core/session.js';
import { maxAutoRestarts, restartDelay, stageOf, step } from './session.js';
import type { Effect, SessionEvent, SessionState, Stage } from '../core/session-events.js';

const start = Date.UTC(2026, 0, 15, 9);
const now = start + 60_000;
const stages: Stage[] = ['starting', 'running', 'stopping', 'ended', 'restarting'];

function entryIn(
  stage: Stage,
  { session = {}, handle = {} }: { session?: Partial<Session>; handle?: Partial<Handle> } = {},
): SessionState {
  const isOver = stage === 'ended' || stage === 'restarting';
  const hasProcess = stage === 'running' || stage === 'stopping';
  const status = isOver ? 'errored' : stage === 'starting' ? 'spawning' : 'working';
  return {
    session: {
      id: '01K9ZQ4M7T3V8X2B6C0D5E1F9G',
      name: 'agent',
      status,
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
      pid: hasProcess ? 100 : null,
      exit_code: null,
      auto_restart: true,
      restart_count: 0,
      pipeline_id: null,
      job_id: null,
      context_tokens: null,
      context_state: null,
      force_compact: 'inherit',
      limited_until: null,
      last_error: null,
      status_since: new Date(start).toISOString(),
      status_reason: null,
      created_at: new Date(start).toISOString(),
      updated_at: new Date(start).toISOString(),
      ...session,
    },
    handle: {
      token: 'a'.repeat(32),
      startMark: hasProcess ? 'boot:1' : null,
      starts: 1,
      startedAt: start,
      inputAt: start,
      limitTurn: null,
      isPromptPending: false,
      isStopping: stage === 'stopping',
      cli: 'claude',
      format: 'text',
      model: null,
      autoRestarts: 0,
      restartAt: stage === 'restarting' ? now + 1_000 : null,
      outputStart: 0,
      worktree: null,
      ...handle,
    },
  };
}

const observed = { at: now, run: 1, turn: start };
const idle: Sign = { status: 'idle', reason: 'empty' };
const working: Sign = { status: 'working', reason: 'busy' };
const exit = { code: 1, signal: null, isLost: false, limit: null, failure: null };

const events: { [Type in SessionEvent['type']]: Extract<SessionEvent, { type: Type }> } = {
  created: { type: 'created', at: now },
  prepared: {
    type: 'prepared',
    at: now,
    own: 'own',
    format: 'text',
    isPromptPending: false,
    outputStart: 7,
  },
  spawned: { type: 'spawned', at: now, pid: 101, startMark: 'boot:2', isPrompted: true },
  not_started: { type: 'not_started', at: now, reason: 'gone' },
  protocol: { type: 'protocol', sign: idle, facts: { model: 'opus' }, ...observed },
  transcript: { type: 'transcript', sign: idle, ...observed },
  screen: { type: 'screen', sign: idle, isReady: true, ...observed },
  tick: { type: 'tick', staleness: idle, ...observed },
  ended: { type: 'ended', exit, ...observed },
  settled: { type: 'settled', at: now },
  input: { type: 'input', at: now, kind: 'choice' },
  written: {
    type: 'written',
    at: now,
    inputAt: now,
    kind: 'text',
    isTaken: true,
    keepsPrompt: false,
  },
  stop: { type: 'stop', at: now },
  stopped: { type: 'stopped', at: now },
  restart: { type: 'restart', at: now, how: 'again' },
  due: { type: 'due', at: now },
  adopt: { type: 'adopt', at: now, found: { pid: 102, startMark: 'boot:3' } },
  resume: { type: 'resume', at: now },
  note: { type: 'note', at: now, facts: { force_compact: 'on' } },
  merged: { type: 'merged', at: now, isMerged: true },
};

/** The stage after each event, and its effects: r(ecord), n(otify), and others by name. */
const expected: Record<SessionEvent['type'], Record<Stage, string>> = {
  created: row('starting start', '', '', '', ''),
  prepared: row('starting rn launch', '', '', '', ''),
  spawned: row('running rn', '', 'stopping rn kill', '', ''),
  not_started: row('ended rn', '', 'ended rn', '', ''),
  protocol: row('', 'running', 'stopping', '', ''),
  transcript: row('', 'running', 'stopping', '', ''),
  screen: row('', 'running', 'stopping', '', ''),
  tick: row('', 'running rn', 'stopping', '', ''),
  ended: row('', 'ended rn settle', 'ended rn settle', '', ''),
  settled: row('', '', '', 'restarting rn schedule', ''),
  input: row(
    'starting write',
    'running write',
    'stopping write',
    'ended refuse',
    'restarting refuse',
  ),
  written: row('', 'running rn', 'stopping rn', '', ''),
  stop: row('stopping r', 'stopping r kill', 'stopping r kill', 'ended r', 'ended r'),
  stopped: row('', '', 'ended rn settle', '', ''),
  restart: row('starting refuse', '', '', 'starting rn start', 'starting rn start'),
  due: row('', '', '', '', 'starting rn start'),
  adopt: row('running rn', '', '', '', ''),
  resume: row('', '', 'stopping stop', 'restarting rn schedule', 'restarting schedule'),
  note: row('starting rn', 'running rn', 'stopping rn', 'ended rn', 'restarting rn'),
  merged: row('starting rn', '', '', 'ended rn', 'restarting rn'),
};

function row(...cells: [string, string, string, string, string]): Record<Stage, string> {
  return Object.fromEntries(
    stages.map((stage, index) => [stage, cells[index] === '' ? stage : cells[index]]),
  ) as Record<Stage, string>;
}

function shown({ entry, effects }: { entry: Entry; effects: readonly Effect[] }): string {
  const letters = { record: 'r', notify: 'n' } as const;
  const short = effects.flatMap(({ type }) => (type in letters ? letters[type as 'record'] : []));
  const long = effects.flatMap(({ type }) => (type in letters ? [] : type));
  return [stageOf(entry), short.join(''), ...long].filter((word) => word !== '').join(' ');
}

describe('session: every stage and event', () => {
  for (const event of Object.values(events)) {
    test.each(stages)(`${event.type} while %s`, (stage) => {
      const before = deepFrozen(entryIn(stage));
      const after = step(before, deepFrozen(event));
      expect(shown(after)).toBe(expected[event.type][stage]);
      expect(step(before, event)).toEqual(after);
    });
  }
});

describe('session: evidence', () => {
  const after = (state: SessionState, ...all: SessionEvent[]) =>
    all.reduce((entry, event) => step(entry, event).entry, state);

  test('the strongest reading decides, in whatever order they come', () => {
    const { protocol, transcript, screen, tick } = events;
    const readings = [screen, { ...protocol, sign: working }, transcript];
    expect(after(entryIn('running'), ...readings, tick).session.status).toBe('working');
    expect(after(entryIn('running'), screen, transcript, tick).session.status).toBe('idle');
  });

  test('a reading counts for one tick', () => {
    const state = after(entryIn('running'), events.protocol, events.tick);
    expect(state.readings).toBeUndefined();
    const next = after(state, { ...events.tick, staleness: undefined });
    expect(next.session).toBe(state.session);
  });

  test('facts of the transcript replace those of the protocol', () => {
    const written = { ...events.transcript, facts: { model: 'sonnet' } };
    const { session } = after(entryIn('running'), events.protocol, written, events.tick);
    expect(session.model).toBe('sonnet');
  });

  test('an observation from before the last input only brings facts', () => {
    const { protocol, tick } = events;
    const state = after(entryIn('running'), events.written);
    const { session } = after(state, protocol, tick);
    expect(session).toMatchObject({ status: 'working', model: 'opus' });
  });

  test('an observation of an earlier start is ignored', () => {
    const state = entryIn('running', { handle: { starts: 2 } });
    const { protocol, tick, ended } = events;
    expect(after(state, protocol, tick, ended)).toBe(state);
  });

  test('a cancelled turn does not change the status of an agent that is being stopped', () => {
    const { session } = after(entryIn('stopping'), events.screen, events.tick);
    expect(session.status).toBe('working');
  });

  test('a stopped agent is done, however its process ended', () => {
    const { session } = after(entryIn('stopping'), events.ended);
    expect(session).toMatchObject({ status: 'done', exit_code: 1, pid: null });
  });

  test('a limit is noted once for its turn', () => {
    const sign: Sign = { status: 'rate_limited', reason: 'limit', limitedUntil: now + 1 };
    const state = after(entryIn('running'), { ...events.screen, sign }, events.tick);
    expect(state.handle.limitTurn).toBe(start);
  });
});

describe('session: input', () => {
  const effectsOf = (state: SessionState, kind: 'text' | 'choice' | 'permission' | 'interrupt') =>
    step(state, { type: 'input', at: now, kind }).effects;

  test('a headless run only takes answers to permission requests', () => {
    const headless = entryIn('running', { session: { driver: 'headless' } });
    for (const kind of ['text', 'choice', 'interrupt'] as const) {
      expect(effectsOf(headless, kind)).toMatchObject([{ type: 'refuse' }]);
    }
    expect(effectsOf(headless, 'permission')).toMatchObject([{ type: 'write' }]);
  });

  test('a text waits until the agent works', () => {
    expect(effectsOf(entryIn('starting'), 'text')).toMatchObject([{ type: 'refuse' }]);
  });

  test('an answer to a first dialog leaves the prompt to be sent', () => {
    const handle = { isPromptPending: true };
    const asking = entryIn('running', { session: { status: 'waiting_for_input' }, handle });
    expect(effectsOf(asking, 'text')).toMatchObject([{ keepsPrompt: true }]);
    expect(effectsOf(asking, 'choice')).toMatchObject([{ keepsPrompt: true }]);
    expect(effectsOf(entryIn('running', { handle }), 'text')).toMatchObject([
      { keepsPrompt: false },
    ]);
  });

  test('the first prompt is written when the screen is ready for it', () => {
    const pending = entryIn('running', { handle: { isPromptPending: true } });
    const ready = step(pending, events.screen).entry;
    expect(step(ready, events.tick).effects).toContainEqual({ type: 'write', keepsPrompt: false });
    const other = step(pending, { ...events.screen, isReady: false }).entry;
    expect(step(other, events.tick).effects.map(({ type }) => type)).not.toContain('write');
  });

  test('a prompt that has not arrived after 60 s ends the agent as errored', () => {
    const pending = entryIn('running', { handle: { isPromptPending: true } });
    const blind = step(pending, { ...events.screen, sign: undefined, isReady: false }).entry;
    const tick = { ...events.tick, staleness: undefined };
    const early = step(blind, { ...tick, at: start + 59_999 });
    expect(early.effects).toEqual([]);
    const late = step(blind, { ...tick, at: start + 60_000 });
    expect(late.effects).toContainEqual({ type: 'kill' });
    const { session } = step(late.entry, { ...events.ended, at: start + 61_000 }).entry;
    const reason =
      'its prompt could not be delivered: the program never showed that it was ready for it';
    expect(session).toMatchObject({
      status: 'errored',
      status_reason: reason,
      last_error: reason,
    });
    const typed = step(pending, {
      ...events.written,
      kind: 'prompt',
      isTaken: false,
      keepsPrompt: true,
    }).entry;
    expect(typed.handle.isPromptPending).toBe(true);
    const ready = step(typed, events.screen).entry;
    expect(step(ready, { ...tick, at: start + 1_000 }).effects).toContainEqual({
      type: 'write',
      keepsPrompt: false,
    });
    expect(step(ready, tick).effects).toContainEqual({ type: 'kill' });
    const asking = entryIn('running', {
      session: { status: 'waiting_for_input' },
      handle: { isPromptPending: true },
    });
    expect(step(asking, tick).effects).not.toContainEqual({ type: 'kill' });
  });

  test('a program that ends well before its prompt arrived has failed', () => {
    const pending = entryIn('running', { handle: { isPromptPending: true } });
    const exit = { code: 0, signal: null, isLost: false, limit: null, failure: null };
    const { session } = step(pending, { ...events.ended, exit }).entry;
    expect(session.status).toBe('errored');
  });

  test('a text that nothing shows to be taken is noted as an error', () => {
    const { session } = step(entryIn('running'), { ...events.written, isTaken: false }).entry;
    expect(session).toMatchObject({ status: 'working', last_error: expect.any(String) });
  });
});

describe('session: life cycle', () => {
  test('adopt: without its process an interrupted start is lost', () => {
    const { session } = step(entryIn('starting'), { type: 'adopt', at: now }).entry;
    expect(session.status).toBe('orphaned');
  });

  test('restart: a request counts restarts, and resets the automatic ones', () => {
    const { session, handle } = step(
      entryIn('restarting', { handle: { autoRestarts: 3 } }),
      events.restart,
    ).entry;
    expect([session.restart_count, handle.autoRestarts]).toEqual([1, 0]);
    const revived = step(entryIn('restarting', { handle: { autoRestarts: 3 } }), events.due).entry;
    expect(revived.handle.autoRestarts).toBe(4);
  });

  test('restart: refused while a process runs that has not begun to work', () => {
    const spawning = entryIn('running', { session: { status: 'spawning' } });
    expect(step(spawning, events.restart).effects).toMatchObject([{ type: 'refuse' }]);
  });

  test('restart: after too many in a row it is left alone, and says so once', () => {
    const ended = entryIn('ended', { handle: { autoRestarts: maxAutoRestarts } });
    const after = step(ended, events.settled);
    expect(after.effects.map(({ type }) => type)).toEqual(['record', 'notify']);
    expect(after.entry.session.status_reason).toContain('is left alone');
    expect(step(after.entry, events.resume)).toEqual({ entry: after.entry, effects: [] });
  });
});

describe('session: automatic restarts', () => {
  const ended = (session: Partial<Session>, handle: Partial<Handle> = {}) =>
    entryIn('ended', {
      session: { status_since: new Date(now).toISOString(), ...session },
      handle: { startedAt: now - 1_000, ...handle },
    });

  test('only what asks for it and went wrong is restarted', () => {
    expect(restartDelay(ended({}), now)).toBeGreaterThan(0);
    expect(restartDelay(ended({ status: 'orphaned' }), now)).toBeGreaterThan(0);
    expect(restartDelay(ended({ auto_restart: false }), now)).toBeUndefined();
    expect(restartDelay(ended({ status: 'done' }), now)).toBeUndefined();
    expect(restartDelay(ended({}, { isStopping: true }), now)).toBeUndefined();
  });

  test('the delay grows up to a maximum', () => {
    const delays = Array.from({ length: maxAutoRestarts }, (_, autoRestarts) =>
      restartDelay(ended({}, { autoRestarts }), now),
    ) as number[];
    delays.slice(1).forEach((delay, n) => expect(delay).toBe(2 * delays[n]!));
    expect(restartDelay(ended({}, { autoRestarts: maxAutoRestarts }), now)).toBe('never');
  });

  test('a long run resets the count', () => {
    const handle = { autoRestarts: maxAutoRestarts, startedAt: now - 3_600_000 };
    expect(restartDelay(ended({}, handle), now)).toBe(restartDelay(ended({}), now));
  });

  test('not before a limit is over', () => {
    const limited_until = new Date(now + 3_600_000).toISOString();
    expect(restartDelay(ended({ status: 'rate_limited', limited_until }), now)).toBe(3_600_000);
  });
});

describe('session: random walks', () => {
  test('no order of events leaves the table or breaks an invariant', () => {
    for (let seed = 1; seed <= 200; seed++) {
      try {
        walk(seed);
      } catch (error) {
        throw new Error(`seed ${seed}`, { cause: error });
      }
    }
  });

  /** Feeds events in any order, with values of this and of other runs and turns. */
  function walk(seed: number): void {
    const random = generator(seed);
    const pick = <Each>(all: readonly Each[]): Each => all[Math.floor(random() * all.length)]!;
    let state = entryIn('starting', {
      session: { driver: pick(['tmux', 'headless', 'acp'] as const), auto_restart: random() < 0.8 },
      handle: { starts: 0 },
    });
    let at = start;
    const settled = new Set<number>();
    for (let count = 0; count < 300; count++) {
      at += Math.floor(random() * 5_000);
      const before = deepFrozen(state);
      const event = randomEvent(before, at, random, pick);
      const { entry, effects } = step(before, event);
      checkStage(before, entry, event);
      checkEffects(before, { entry, effects }, settled);
      state = entry;
    }
  }

  /** Stages that each may follow; other moves break the table. */
  const follows: Record<Stage, readonly Stage[]> = {
    starting: ['starting', 'running', 'stopping', 'ended'],
    running: ['running', 'stopping', 'ended'],
    stopping: ['stopping', 'ended'],
    ended: ['ended', 'restarting', 'starting'],
    restarting: ['restarting', 'ended', 'starting'],
  };

  function checkStage(before: Entry, after: Entry, event: SessionEvent): void {
    const [from, to] = [stageOf(before), stageOf(after)];
    const isRestart = event.type === 'restart' || event.type === 'due';
    const { session, handle } = after;
    assert(follows[from].includes(to), `${event.type} led from ${from} to ${to}`);
    // The end is final for everything but a restart.
    if (isEnded(before.session) && !isRestart) {
      assert.equal(session.status, before.session.status);
      assert.equal(session.exit_code, before.session.exit_code);
    }
    if (to === 'ended' || to === 'restarting') assert.equal(session.pid, null);
    if (to === 'running') assert.notEqual(handle.startMark, null);
    const isSpawning = session.status === 'spawning' && before.session.status !== 'spawning';
    assert(!isSpawning || isRestart, `${event.type} led back to spawning`);
    assert(handle.autoRestarts <= maxAutoRestarts, 'too many restarts in a row');
    const isStart = event.type === 'prepared' && from === 'starting';
    assert.equal(handle.starts - before.handle.starts, isStart ? 1 : 0);
  }

  function checkEffects(
    before: Entry,
    { entry, effects }: { entry: Entry; effects: readonly Effect[] },
    settled: Set<number>,
  ): void {
    const types = effects.map(({ type }) => type);
    const has = (type: Effect['type']) => types.includes(type);
    assert.equal(new Set(types).size, types.length);
    const isNewSession = entry.session !== before.session;
    assert.equal(has('notify'), isNewSession);
    assert.equal(has('record'), isNewSession || entry.handle !== before.handle);
    const acts = (['write', 'kill', 'launch', 'settle'] as const).some(has);
    assert(!isEnded(before.session) || !acts, `an ended session got ${types.join(', ')}`);
    if (has('start')) assert.equal(stageOf(entry), 'starting');
    if (has('schedule')) assert.equal(stageOf(entry), 'restarting');
    if (has('kill')) assert.notEqual(entry.handle.startMark, null);
    if (!has('settle')) return;
    assert(isEnded(entry.session));
    // One end for each start.
    const { restart_count: run } = entry.session;
    assert(!settled.has(run), `start ${run} was settled twice`);
    settled.add(run);
  }

  function randomEvent(
    { handle }: Entry,
    at: number,
    random: () => number,
    pick: <Each>(all: readonly Each[]) => Each,
  ): SessionEvent {
    const event = pick(Object.values(events));
    const sign = pick<Sign | undefined>([
      undefined,
      idle,
      working,
      { status: 'waiting_for_input', reason: 'it asks' },
      { status: 'rate_limited', reason: 'limit', limitedUntil: at + 10_000 },
    ]);
    const run = pick([handle.starts, handle.starts, handle.starts, handle.starts - 1]);
    const turn = pick([handle.inputAt, handle.inputAt, handle.inputAt - 1]);
    switch (event.type) {
      case 'protocol':
      case 'transcript':
      case 'screen':
        return { ...event, at, run, turn, sign };
      case 'tick':
        return { ...event, at, run, turn, staleness: sign };
      case 'ended': {
        const limit = random() < 0.2 ? { reason: 'limit', until: at + 60_000 } : null;
        const code = pick([0, 1, null]);
        return { ...event, at, run, turn, exit: { ...exit, code, limit, isLost: random() < 0.2 } };
      }
      case 'prepared':
        return { ...event, at, isPromptPending: random() < 0.5 };
      case 'input':
        return { ...event, at, kind: pick(['text', 'choice', 'permission', 'interrupt']) };
      case 'adopt':
        return random() < 0.5 ? { ...event, at } : { type: 'adopt', at };
      case 'written':
        return { ...event, at, inputAt: at, isTaken: random() < 0.8, keepsPrompt: random() < 0.2 };
      default:
        return { ...event, at };
    }
  }
});

/** mulberry32 */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

function deepFrozen<Value>(value: Value): Value {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach((each) => deepFrozen(each));
  }
  return value;
}
