import { expect, test } from 'vitest';
import type { Clock } from './clock-and-random.js';
import { ConnectionLimit, countDroppedConnections } from './limits.js';
import { memoryLog } from './log.js';
import { createMetrics } from './metrics.js';

/** A clock that stands still until it is moved. */
class ManualClock implements Clock {
  #now = 0;
  #timers: { at: number; run: () => void }[] = [];

  now = () => this.#now;
  monotonic = () => this.#now;

  after(delayMs: number, run: () => void) {
    const timer = { at: this.#now + delayMs, run };
    this.#timers.push(timer);
    return { cancel: () => void (this.#timers = this.#timers.filter((each) => each !== timer)) };
  }

  sleep(): Promise<void> {
    throw new Error('nobody sleeps here');
  }

  /** Time passes, and what is due runs once. */
  stall(byMs: number): void {
    this.#now += byMs - 100;
    this.advance(100);
  }

  advance(byMs: number): void {
    for (let step = 0; step < byMs; step += 100) {
      this.#now += 100;
      const due = this.#timers.filter(({ at }) => at <= this.#now);
      this.#timers = this.#timers.filter(({ at }) => at > this.#now);
      for (const { run } of due) run();
    }
  }
}

function start(maxConnections: number) {
  const clock = new ManualClock();
  const log = memoryLog();
  const { lines } = log;
  const drops: string[] = [];
  const onDrop = (_listener: string, reason: string) => drops.push(reason);
  const limit = new ConnectionLimit({ clock, log, listener: 'http', maxConnections, onDrop });
  const open = (bytesRead = 0) => {
    const state = { isOpen: true };
    const connection = { bytesRead, destroy: () => (state.isOpen = false) };
    const slot = limit.admit(connection);
    return { slot, connection, state };
  };
  const user = (name?: string) => {
    const opened = open(10);
    opened.slot.enter();
    return { ...opened, isServed: opened.slot.authenticate(name) };
  };
  return { clock, lines, drops, limit, open, user };
}

test('connections: the oldest stranger makes room for a new one', () => {
  const { open, drops } = start(3);
  const strangers = [open(), open(), open(), open()];
  expect(strangers.map(({ state }) => state.isOpen)).toEqual([false, true, true, true]);
  expect(drops).toEqual(['unauthenticated']);
});

test('connections: strangers never push out an authenticated one', () => {
  const { open, user } = start(3);
  const known = user();
  for (let n = 0; n < 100; n++) open();
  expect(known.state.isOpen).toBe(true);
  expect(user().isServed).toBe(true);
});

test('connections: an idle one makes room, a busy one does not', () => {
  const { user, drops } = start(2);
  const [first, second] = [user(), user()];
  first.slot.leave();
  const third = user();
  expect([first, second, third].map(({ state }) => state.isOpen)).toEqual([false, true, true]);
  const fourth = user();
  expect(fourth.isServed).toBe(false);
  // Its connection stays until the refusal is sent.
  expect(fourth.state.isOpen).toBe(true);
  expect(drops).toEqual(['idle', 'refused']);
});

test('connections: a stranger has a slot when all are in use', () => {
  const { open, user } = start(16);
  const known = Array.from({ length: 16 }, () => user());
  const probes = Array.from({ length: 65 }, () => open(10));
  expect(probes.map(({ state }) => state.isOpen)).toEqual([...Array(63).fill(false), true, true]);
  expect(known.every(({ state }) => state.isOpen)).toBe(true);
});

test('connections: one principal leaves some to the others', () => {
  const { user } = start(16);
  const polls = Array.from({ length: 16 }, () => user('one'));
  expect(polls.filter(({ isServed }) => isServed)).toHaveLength(14);
  expect([user('other').isServed, user('other').isServed]).toEqual([true, true]);
  polls[0]!.slot.leave();
  expect(user('one').isServed).toBe(true);
  expect(polls[0]!.state.isOpen).toBe(false);
  polls[1]!.slot.close();
  expect(user('one').isServed).toBe(true);
});

test('connections: one that sends nothing is closed after five seconds', () => {
  const { clock, open, drops } = start(10);
  const [silent, begun] = [open(0), open(1)];
  clock.advance(4_900);
  expect(silent.state.isOpen).toBe(true);
  clock.advance(2_000);
  expect([silent.state.isOpen, begun.state.isOpen]).toEqual([false, true]);
  expect(drops).toEqual(['silent']);
});

test('connections: bytes that arrive while the process stalls count', () => {
  const { clock, open } = start(10);
  const late = open(0);
  clock.stall(9_000);
  late.connection.bytesRead = 1;
  clock.advance(5_000);
  expect(late.state.isOpen).toBe(true);
});

test('connections: drops are logged at most once in ten seconds, with their number', () => {
  const { clock, open, lines } = start(2);
  for (let n = 0; n < 50; n++) open(1);
  expect(lines).toHaveLength(1);
  clock.advance(11_000);
  open(1);
  expect(lines).toHaveLength(2);
  expect(lines[1]).toMatchObject({
    message: 'connections dropped',
    fields: { unauthenticated: 48 },
  });
});

test('connections: drops are counted by listener and reason', async () => {
  const metrics = createMetrics('test');
  const count = countDroppedConnections(metrics);
  count('grpc', 'idle');
  count('grpc', 'idle');
  const line = 'connections_dropped_total{listener="grpc",reason="idle"} 2';
  expect(await metrics.text()).toContain(line);
  metrics.close();
});
