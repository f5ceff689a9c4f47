import { afterEach, beforeEach, expect, test } from 'vitest';
import { compactCooldownMs, compactGraceMs, interruptLimitMs } from '../core/guard.js';
import { fail } from '../core/api.js';
import type { Alert, Once } from '../notify/alert-store.js';
import { TestStore } from '../notify/notify.test-support.js';
import type { Compaction } from '../savings/recorder.js';
import type { Session } from '../sessions/port.js';
import { compactCommand, ContextGuard, GuardStore, type GuardParts } from './guard.js';

let room: TestStore;
let guard: ContextGuard;
let raised: (Alert & { once: Once | undefined })[];
let saved: Compaction[];

beforeEach(() => {
  room = new TestStore();
  [raised, saved] = [[], []];
});
afterEach(async () => {
  await guard.close();
  await room.dispose();
  expect(room.sessions.listenerCount).toBe(0);
});

async function start(
  more: Partial<Omit<GuardParts, 'rules'>> & { rules?: Partial<GuardParts['rules']> } = {},
): Promise<void> {
  const { database } = await room.open();
  const { rules, ...rest } = more;
  guard = new ContextGuard({
    ...room.world,
    sessions: room.sessions,
    store: await GuardStore.open(database),
    alerts: { raise: async (alert, once) => void raised.push({ ...alert, once }) },
    recorder: { recordCompaction: async (done) => (saved.push(done), undefined) },
    forceCompact: false,
    resumePrompt: 'continue',
    rules: { warn: 200_000, critical: 400_000, alerts: true, autoCompact: true, ...rules },
    ...rest,
  });
  await guard.start();
  await guard.settled();
}

async function restart(more: Parameters<typeof start>[0] = {}): Promise<void> {
  await guard.close();
  await room.closeStore();
  await start(more);
}

async function set(session: Session, partial: Partial<Session>): Promise<void> {
  room.sessions.set(session.id, partial);
  await guard.settled();
}

/** Advances the clock and runs the due checks of the guard. */
async function pass(durationMs: number): Promise<void> {
  room.clock.advance(durationMs);
  await new Promise((resolve) => setImmediate(resolve));
  await guard.settled();
}

const texts = () => room.sessions.sent.map(({ text }) => text);

test('guard: percentages count from the window of the model, where it is known', async () => {
  await start({ rules: { warn_pct: 50, critical_pct: 90 } });
  room.sessions.add({ status: 'idle', context_tokens: 235_000, context_window: 258_000 });
  room.sessions.add({ status: 'idle', context_tokens: 190_000 });
  await guard.settled();
  expect(raised.map(({ kind, body }) => [kind, body])).toEqual([
    ['context_warning', 'It holds 235k tokens; the limit is 129k.'],
    ['context_critical', 'It holds 235k tokens; the limit is 232k.'],
  ]);
  expect(texts()).toEqual(['/compact']);
});

test('an alert names the agent, the figure and the limit, once for each crossing', async () => {
  await start();
  const session = room.sessions.add({ name: 'docs', status: 'working' });
  for (const tokens of [150_000, 210_000, 220_000, 401_000, 402_000, 10_000, 200_000]) {
    await set(session, { context_tokens: tokens });
  }
  expect(raised.map(({ kind, severity }) => [kind, severity])).toEqual([
    ['context_warning', 'warning'],
    ['context_critical', 'critical'],
    ['context_warning', 'warning'],
  ]);
  expect(raised[1]).toMatchObject({
    agentId: session.id,
    title: 'The context of docs is critical',
    body: 'It holds 401k tokens; the limit is 400k.',
  });
  expect(texts()).toEqual([]);
});

test('a restart neither repeats an alert nor shortens the cooldown', async () => {
  await start();
  const session = room.sessions.add({ status: 'idle', context_tokens: 450_000 });
  await guard.settled();
  expect([raised.length, texts()]).toEqual([2, ['/compact']]);
  await set(session, { status: 'idle', context_tokens: 440_000 });
  await restart();
  await pass(compactCooldownMs - 1);
  expect([raised.length, texts()]).toEqual([2, ['/compact']]);
  await pass(1);
  expect([raised.length, texts()]).toEqual([2, ['/compact', '/compact']]);
});

test('an agent that went critical while no daemon ran is found at the start', async () => {
  room.sessions.add({ status: 'idle', context_tokens: 450_000 });
  await start();
  expect(raised.map(({ kind }) => kind)).toEqual(['context_warning', 'context_critical']);
  expect(texts()).toEqual(['/compact']);
});

test('a compaction that made the context smaller is counted as a saving, once', async () => {
  await start();
  const session = room.sessions.add({ status: 'idle', context_tokens: 450_000, repo: '/src/x' });
  await guard.settled();
  await set(session, { status: 'idle' });
  expect(saved).toEqual([]);
  await restart();
  await set(session, { context_tokens: 30_000 });
  await set(session, { context_tokens: 20_000 });
  expect(saved).toEqual([
    { agentId: session.id, repo: '/src/x', tokensBefore: 450_000, tokensAfter: 30_000 },
  ]);
});

test('a compaction that did nothing is no saving', async () => {
  await start();
  const session = room.sessions.add({ status: 'idle', context_tokens: 450_000 });
  await guard.settled();
  await set(session, { context_tokens: 451_000 });
  await set(session, { context_tokens: 30_000 });
  expect(saved).toEqual([]);
});

test('a busy agent is interrupted, compacts, and goes on', async () => {
  await start({ forceCompact: true });
  const session = room.sessions.add({ status: 'working', context_tokens: 450_000 });
  await guard.settled();
  expect([room.sessions.interrupted, texts()]).toEqual([[session.id], []]);
  await pass(10_000);
  await set(session, { status: 'idle' });
  expect(texts()).toEqual(['/compact']);
  await set(session, { status: 'idle', context_tokens: 25_000 });
  expect(texts()).toEqual(['/compact', 'continue']);
  await set(session, { status: 'idle' });
  await pass(compactCooldownMs);
  expect([room.sessions.interrupted.length, texts().length, saved.length]).toEqual([1, 2, 1]);
});

test('a daemon that ends in the middle of it leaves the rest to the next one', async () => {
  await start({ forceCompact: true });
  const session = room.sessions.add({ status: 'working', context_tokens: 450_000 });
  await guard.settled();
  await guard.close();
  room.sessions.set(session.id, { status: 'idle' });
  await restart({ forceCompact: true });
  expect([room.sessions.interrupted.length, texts()]).toEqual([1, ['/compact']]);
  await guard.close();
  room.sessions.set(session.id, { status: 'idle', context_tokens: 25_000 });
  await restart({ forceCompact: true });
  expect([room.sessions.interrupted.length, texts()]).toEqual([1, ['/compact', 'continue']]);
});

test('an interrupt that does not take is given up, and the request follows at the next rest', async () => {
  await start({ forceCompact: true });
  const session = room.sessions.add({ status: 'working', context_tokens: 450_000 });
  await guard.settled();
  await pass(interruptLimitMs);
  expect(room.warnings).toEqual(['interrupt failed, compacting when idle']);
  await set(session, { context_tokens: 460_000 });
  expect(texts()).toEqual([]);
  await set(session, { status: 'idle' });
  expect([room.sessions.interrupted.length, texts()]).toEqual([1, ['/compact']]);
  await set(session, { status: 'idle', context_tokens: 25_000 });
  expect(texts()).toEqual(['/compact']);
});

test.each([
  ['on', false, 1],
  ['off', true, 0],
  ['inherit', true, 1],
  ['inherit', false, 0],
] as const)('the override %s over the setting %s interrupts %i times', async (own, all, times) => {
  await start({ forceCompact: all });
  room.sessions.add({ status: 'working', context_tokens: 450_000, force_compact: own });
  await guard.settled();
  expect(room.sessions.interrupted.length).toBe(times);
});

test('an override that is switched on counts at once', async () => {
  await start();
  const session = room.sessions.add({ status: 'working', context_tokens: 450_000 });
  await guard.settled();
  expect(room.sessions.interrupted).toEqual([]);
  await room.sessions.setForceCompact(session.id, 'on');
  await guard.settled();
  expect(room.sessions.interrupted).toEqual([session.id]);
});

test('an agent that nobody can type into, or that cannot compact, only has its alerts', async () => {
  await start({ forceCompact: true });
  room.sessions.add({ status: 'working', context_tokens: 450_000, driver: 'headless' });
  room.sessions.add({ status: 'working', context_tokens: 450_000, backend: 'aider' });
  room.sessions.add({ status: 'idle', context_tokens: 450_000, backend: 'aider' });
  await guard.settled();
  expect([raised.length, room.sessions.interrupted, texts()]).toEqual([6, [], []]);
});

test('guard: each CLI gets its own compact command', async () => {
  const sent = ['claude', 'codex', 'gemini', 'qwen', 'aider', 'toString'].map(compactCommand);
  expect(sent).toEqual(['/compact', '/compact', '/compress', '/compress', null, '/compact']);
  await start();
  room.sessions.add({ status: 'idle', context_tokens: 450_000, backend: 'gemini' });
  await guard.settled();
  expect(texts()).toEqual(['/compress']);
});

test('a command that is refused is not repeated before its time, and the turn goes on', async () => {
  await start({ forceCompact: true });
  const session = room.sessions.add({ status: 'working', context_tokens: 450_000 });
  room.sessions.refuseSend = () => fail('SESSION_STATE', 'The turn did not begin.');
  await set(session, { status: 'idle' });
  expect(room.warnings).toEqual(['context guard action refused']);
  room.sessions.refuseSend = undefined;
  await pass(compactGraceMs);
  expect(texts()).toEqual(['continue']);
  await set(session, { status: 'idle' });
  await pass(compactCooldownMs);
  expect(texts()).toEqual(['continue']);
});

test('without a resume prompt nothing is sent after the compaction', async () => {
  await start({ forceCompact: true, resumePrompt: '' });
  const session = room.sessions.add({ status: 'working', context_tokens: 450_000 });
  await set(session, { status: 'idle' });
  await set(session, { status: 'idle', context_tokens: 20_000 });
  expect(texts()).toEqual(['/compact']);
});

test('what fails with one agent is logged and keeps the others guarded', async () => {
  await start({
    recorder: { recordCompaction: () => Promise.reject(new Error('disk full')) },
  });
  const session = room.sessions.add({ status: 'idle', context_tokens: 450_000 });
  await guard.settled();
  await set(session, { status: 'idle', context_tokens: 10_000 });
  expect(room.warnings).toEqual(['context guard failed']);
  const other = room.sessions.add({ status: 'idle', context_tokens: 450_000 });
  await guard.settled();
  expect(room.sessions.sent.at(-1)).toEqual({ id: other.id, text: '/compact' });
});

test('guard: an outdated snapshot raises alerts, but causes no action', async () => {
  let letGo = () => {};
  const held = new Promise<void>((resolve) => (letGo = resolve));
  await start({
    alerts: { raise: async (alert) => (raised.push({ ...alert, once: undefined }), held) },
  });
  const session = room.sessions.add({ status: 'working', context_tokens: 210_000 });
  room.sessions.set(session.id, { status: 'idle', context_tokens: 450_000 });
  room.sessions.set(session.id, { status: 'working' });
  letGo();
  await guard.settled();
  expect(raised.map(({ kind }) => kind)).toEqual(['context_warning', 'context_critical']);
  expect(texts()).toEqual([]);
});

test('an agent that ends while it is typed to is no fault', async () => {
  await start();
  room.sessions.refuseSend = (id) => {
    room.sessions.set(id, { status: 'done' });
    return new Error('no server running');
  };
  room.sessions.add({ status: 'idle', context_tokens: 450_000 });
  await guard.settled();
  expect(room.warnings).toEqual([]);
  room.sessions.refuseSend = () => new Error('no server running');
  room.sessions.add({ status: 'idle', context_tokens: 450_000 });
  await guard.settled();
  expect(room.warnings).toEqual(['context guard failed']);
});

test('an agent that is gone is forgotten, also when it went while no daemon ran', async () => {
  await start();
  const [here, gone] = [1, 2].map(() => room.sessions.add({ context_tokens: 250_000 }));
  await guard.settled();
  await room.sessions.remove(here!.id);
  await guard.settled();
  const stored = async () => (await GuardStore.open((await room.open()).database)).agents;
  expect(await stored()).toEqual([gone!.id]);
  await guard.close();
  await room.sessions.remove(gone!.id);
  await restart();
  expect(await stored()).toEqual([]);
});
