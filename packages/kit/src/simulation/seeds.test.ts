import { afterEach, describe, expect, test, vi } from 'vitest';
import { runSeed, seeds, simulate, unreliable, type Simulation } from './index.js';

// A small service with everything that makes runs differ: two nodes, crashes, chance, sleeps.
async function busyDay(world: Simulation): Promise<void> {
  const boot = (name: string) => {
    const node = world.node(name);
    node.start(async () => {
      for (;;) {
        await node.clock.sleep(node.random.integer(1, 1000));
        node.log.info({ id: node.random.ulid(node.clock.now()) }, 'tick');
        if (world.fault('crash', name)) {
          node.crash();
          world.clock.after(500, () => boot(name));
        }
      }
    });
  };
  boot('a');
  boot('b');
  world.disturb([1000, 5000], () => world.jumpClock(world.between([-2000, 2000])));
  await world.runFor(60_000);
}
const faults = { crash: 0.05 };

test('the same seed gives the same run, another seed another one', async () => {
  const hashes = new Map<number, string>();
  for (const seed of [1, 2, 3, 1, 2, 3]) {
    const world = await runSeed(seed, busyDay, { faults });
    expect(world.journal.count).toBeGreaterThan(200);
    expect(hashes.get(seed) ?? world.journal.hash()).toBe(world.journal.hash());
    hashes.set(seed, world.journal.hash());
  }
  expect(new Set(hashes.values()).size).toBe(3);
});

test('many seeds are run and summed up', async () => {
  const report = await seeds(12, busyDay, { faults });
  expect(report.runs).toBe(12);
  expect(report.virtualMs).toBe(12 * 60_000);
  expect(report.events).toBeGreaterThan(12 * 200);
  expect(report.hits.get('crash')).toBeGreaterThan(12);
});

const bug = async (world: Simulation) => {
  await world.runFor(1000);
  if (world.seed >= 4) throw new Error('the invariant does not hold');
};

describe('the first seed that fails', () => {
  afterEach(() => vi.unstubAllEnvs());

  test('is named, and those after it are not run', async () => {
    const run: number[] = [];
    const watched = async (world: Simulation) => {
      run.push(world.seed);
      await bug(world);
    };
    await expect(seeds(20, watched, { repeatEvery: 0 })).rejects.toThrow(
      /^seed 4 failed after 1s of virtual time: the invariant does not hold/,
    );
    expect(run).toEqual([1, 2, 3, 4]);
  });

  test('can be run alone', async () => {
    await expect(seeds(20, bug, { only: 9 })).rejects.toThrow(/^seed 9 failed/);
    vi.stubEnv('MILLRACE_SEED', '5');
    await expect(seeds(20, bug)).rejects.toThrow(/^seed 5 failed/);
    vi.stubEnv('MILLRACE_SEED', 'five');
    await expect(seeds(20, bug)).rejects.toThrow('$MILLRACE_SEED must be a whole number');
  });
});

test('a nondeterministic scenario is detected', async () => {
  let outside = 0;
  const leaky = async (world: Simulation) => {
    await world.runFor(10);
    world.note('step', { value: outside++ });
  };
  await expect(seeds(3, leaky)).rejects.toThrow(
    'seed 1 does not repeat, so something other than the seed decides: ' +
      'event 0 is "10 - step {"value":2}" in one run and "10 - step {"value":3}" in another',
  );
});

test('the journal keeps the newest events and a hash over all', () => {
  const world = simulate(1, { keepEvents: 3 });
  for (let i = 0; i < 100; i++) world.note('event', { i, big: 5n, error: new Error('x') });
  expect(world.journal.count).toBe(100);
  expect(world.journal.lines).toEqual(
    [97, 98, 99].map((i) => `0 - event {"i":${i},"big":"5","error":"Error: x"}`),
  );
  const hash = world.journal.hash();
  world.note('one more');
  expect(world.journal.hash()).not.toBe(hash);
});

async function sendRequest(temper: Parameters<typeof unreliable>[1], times = 1000) {
  const world = simulate(11);
  const call = unreliable(world, temper);
  const answers = { ok: 0, failed: 0, none: times };
  let latestMs = 0;
  for (let i = 0; i < times; i++) {
    world.clock.after(i * 1000, () => {
      world.node('caller').start(async () => {
        answers[await call()]++;
        answers.none--;
        latestMs = world.clock.monotonic() - i * 1000;
      });
    });
  }
  await world.runFor(times * 1000 + 100_000);
  return { ...answers, latestMs };
}

describe('an unreliable handler', () => {
  test('is slow', async () => {
    const { ok, latestMs } = await sendRequest({ latencyMs: [5000, 40_000] }, 10);
    expect(ok).toBe(10);
    expect(latestMs).toBeGreaterThanOrEqual(5000);
  });

  test('fails', async () => {
    const { ok, failed, none } = await sendRequest({ failChance: 0.3 });
    expect([none, ok + failed]).toEqual([0, 1000]);
    expect(failed).toBeGreaterThan(200);
    expect(failed).toBeLessThan(400);
  });

  test('hangs, until the caller gives up', async () => {
    const { none } = await sendRequest({ hangChance: 0.1 });
    expect(none).toBeGreaterThan(50);
    expect(none).toBeLessThan(200);
    const world = simulate(1);
    const controller = new AbortController();
    const call = unreliable(world, { hangChance: 1 })(controller.signal);
    world.clock.after(30_000, () => controller.abort(new Error('timed out')));
    await expect(world.complete(call)).rejects.toThrow('timed out');
  });

  test('flaps', async () => {
    const { ok, failed } = await sendRequest({
      flapping: { upMs: [30_000, 30_000], downMs: [10_000, 10_000] },
    });
    expect(ok + failed).toBe(1000);
    expect(Math.abs(failed - 250)).toBeLessThan(20);
  });
});
