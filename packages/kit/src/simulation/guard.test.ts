import { setTimeout as realSleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { simulate } from './index.js';

class Disk {
  readonly #written: string[] = [];
  get size() {
    return this.#written.length;
  }
  async put(text: string): Promise<number> {
    await Promise.resolve();
    this.#written.push(text);
    return this.#written.length;
  }
  peek(): string | undefined {
    return this.#written.at(-1);
  }
  async *all(): AsyncGenerator<string> {
    for (const text of this.#written) yield text;
  }
}

test('a guarded port works as the port itself', async () => {
  const world = simulate(1);
  const disk = world.node('a').guard(new Disk());
  expect(await disk.put('x')).toBe(1);
  expect(disk.peek()).toBe('x');
  expect(disk.size).toBe(1);
  const all: string[] = [];
  for await (const text of disk.all()) all.push(text);
  expect(all).toEqual(['x']);
});

describe('after a crash', () => {
  test('calls have no effect, and answers on their way never arrive', async () => {
    const world = simulate(1);
    const disk = new Disk();
    const node = world.node('a');
    const port = node.guard(disk);
    const seen: string[] = [];
    const note = (what: string) => () => void seen.push(what);
    port.put('before').then(note('answer'), note('error'));
    node.crash();
    port.put('after').then(note('answer'), note('error'));
    await world.runFor(1000);
    expect(seen).toEqual([]);
    expect(disk.size).toBe(1);
    expect(disk.peek()).toBe('before');
  });

  test('a stream stops where it was', async () => {
    const world = simulate(1);
    const disk = new Disk();
    for (const text of ['a', 'b', 'c']) await disk.put(text);
    const node = world.node('a');
    const seen: string[] = [];
    node.start(async () => {
      for await (const text of node.guard(disk).all()) {
        seen.push(text);
        await node.clock.sleep(10);
      }
    });
    world.clock.after(15, () => node.crash());
    await world.runFor(1000);
    expect(seen).toEqual(['a', 'b']);
  });
});

async function put(fault: string) {
  const world = simulate(1, { faults: { [`disk.${fault}`]: 1 } });
  const disk = new Disk();
  const node = world.node('a');
  let outcome = 'none';
  node
    .guard(disk, { name: 'disk', error: (method) => new Error(`no ${method}`) })
    .put('x')
    .then(
      () => (outcome = 'answer'),
      (error: Error) => (outcome = error.message),
    );
  await world.runFor(1000);
  return {
    written: disk.size,
    outcome,
    alive: node.alive,
    hits: world.hits.get(`disk.${fault}`),
  };
}

const strikes = (faults: Record<string, number>) => {
  const world = simulate(9, { faults });
  return Array.from({ length: 200 }, () => (world.fault('y'), world.fault('x')));
};

describe('faults', () => {
  test.each([
    ['crash_before', { written: 0, outcome: 'none', alive: false, hits: 1 }],
    ['crash_after', { written: 1, outcome: 'none', alive: false, hits: 1 }],
    ['fail_before', { written: 0, outcome: 'no put', alive: true, hits: 1 }],
    ['fail_after', { written: 1, outcome: 'no put', alive: true, hits: 1 }],
  ])('%s', async (fault, expected) => {
    expect(await put(fault)).toEqual(expected);
  });

  test('strike about as often as they should, and not at all once they are stopped', () => {
    const world = simulate(5, { faults: { x: 0.1 } });
    for (let i = 0; i < 10_000; i++) world.fault('x');
    const hits = world.hits.get('x')!;
    expect(hits).toBeGreaterThan(800);
    expect(hits).toBeLessThan(1200);
    world.stopFaults();
    for (let i = 0; i < 1000; i++) world.fault('x');
    expect(world.hits.get('x')).toBe(hits);
    world.setFault('x', 1);
    expect(world.fault('x')).toBe(true);
    expect(world.fault('unheard of')).toBe(false);
  });

  test('one more fault does not change when the others strike', () => {
    expect(strikes({ x: 0.3, y: 0.5 })).toEqual(strikes({ x: 0.3 }));
  });
});

test('latency is virtual', async () => {
  const world = simulate(1);
  const port = world.node('a').guard(new Disk(), { latencyMs: [100, 200] });
  await world.complete(port.put('x'));
  expect(world.clock.monotonic()).toBeGreaterThanOrEqual(100);
  expect(world.clock.monotonic()).toBeLessThanOrEqual(200);
});

test('a port that does real work is answered in the order of the calls', async () => {
  const world = simulate(1);
  const slow = { write: async (delay: number) => realSleep(delay, delay) };
  const port = world.node('a').guard(slow, { io: true, name: 'slow' });
  const seen: number[] = [];
  for (const delay of [25, 1, 10]) {
    world.node('a').start(async () => void seen.push(await port.write(delay)));
  }
  await world.settle();
  expect(seen).toEqual([25, 1, 10]);
});
