import { setImmediate as nextTurn, setTimeout as realSleep } from 'node:timers/promises';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { simulate, SimulationFailure } from './index.js';

describe('virtual time', () => {
  test('does not advance while code runs and jumps from timer to timer', async () => {
    const world = simulate(1, { startAt: 1_000_000 });
    const seen: number[] = [];
    world.clock.after(5000, () => seen.push(world.clock.monotonic()));
    world.clock.after(30 * 86_400_000, () => seen.push(world.clock.monotonic()));
    expect(world.clock.now()).toBe(1_000_000);
    await world.runFor(4999);
    expect(seen).toEqual([]);
    await world.runFor(1);
    expect(seen).toEqual([5000]);
    await world.runFor(31 * 86_400_000);
    expect(seen).toEqual([5000, 30 * 86_400_000]);
    expect(world.clock.now()).toBe(1_000_000 + 5000 + 31 * 86_400_000);
  });

  test('timers run in the order of their times, those of one time in the order they were made', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat({ max: 20 }), { maxLength: 60 }), async (delays) => {
        const world = simulate(1);
        const ran: number[] = [];
        delays.forEach((delay, index) => world.clock.after(delay, () => ran.push(index)));
        await world.runFor(20);
        const expected = delays
          .map((_, i) => i)
          .toSorted((a, b) => delays[a]! - delays[b]! || a - b);
        expect(ran).toEqual(expected);
      }),
      { numRuns: 50 },
    );
  });

  test('a cancelled timer does not run, not even when cancelled at its own instant', async () => {
    const world = simulate(1);
    const ran: string[] = [];
    const late = world.clock.after(10, () => ran.push('late'));
    const first = world.clock.after(5, () => {
      ran.push('first');
      second.cancel();
      late.cancel();
    });
    const second = world.clock.after(5, () => ran.push('second'));
    await world.runFor(100);
    first.cancel();
    expect(ran).toEqual(['first']);
  });

  test('long chains of promises and sleeps run as far as time allows', async () => {
    const world = simulate(1);
    let rounds = 0;
    world.node('a').start(async () => {
      for (;;) {
        for (let i = 0; i < 50; i++) await Promise.resolve();
        await nextTurn();
        await world.clock.sleep(100);
        rounds++;
      }
    });
    await world.runFor(1000);
    expect(rounds).toBe(10);
  });

  test('a sleep can be cut short by a signal', async () => {
    const world = simulate(1);
    const controller = new AbortController();
    const slept = world.clock.sleep(1000, controller.signal);
    world.clock.after(10, () => controller.abort(new Error('enough')));
    await expect(world.complete(slept)).rejects.toThrow('enough');
    expect(world.clock.monotonic()).toBe(10);
  });

  test('a jump moves the clock on the wall and nothing else', async () => {
    const world = simulate(1, { startAt: 0 });
    const node = world.node('a');
    const ran: [number, number, number][] = [];
    node.clock.after(1000, () =>
      ran.push([world.clock.now(), node.clock.now(), node.clock.monotonic()]),
    );
    world.jumpClock(500);
    node.jumpClock(-60_000);
    await world.runFor(1000);
    expect(ran).toEqual([[1500, -58_500, 1000]]);
  });
});

describe('running until something holds', () => {
  test('stops at the instant it does', async () => {
    const world = simulate(1);
    let ready = false;
    world.clock.after(70, () => void Promise.resolve().then(() => (ready = true)));
    world.clock.after(90, () => {});
    await world.runUntil(() => ready);
    expect(world.clock.monotonic()).toBe(70);
  });

  test('fails when no timer is left, and when it takes too long', async () => {
    await expect(simulate(7).runUntil(() => false)).rejects.toThrow(
      /^seed 7 failed after 0s .*no timer is left to run/,
    );
    const world = simulate(8);
    world.disturb([1000, 1000], () => {});
    await expect(world.runUntil(() => false, 5500)).rejects.toThrow(
      /^seed 8 failed after 5s500ms .*did not hold within 5500 ms/,
    );
  });

  test('complete() gives the value or the error of a promise', async () => {
    const world = simulate(1);
    const later = async (value: number) => {
      await world.clock.sleep(1000);
      if (value < 0) throw new Error('negative');
      return value;
    };
    expect(await world.complete(later(5))).toBe(5);
    await expect(world.complete(later(-5))).rejects.toThrow('negative');
    await expect(world.complete(new Promise(() => {}))).rejects.toThrow('no timer is left');
  });
});

describe('what goes wrong fails the run', () => {
  test('an exception in a timer', async () => {
    const world = simulate(3);
    world.note('before', { n: 1 });
    world.clock.after(10, () => {
      throw new Error('bug in a timer');
    });
    const failure = await world.runFor(100).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(SimulationFailure);
    expect((failure as Error).message).toBe(
      [
        'seed 3 failed after 10ms of virtual time: bug in a timer',
        'the last 2 events:',
        '  0 - before {"n":1}',
        '  10 - timer',
        'to run this seed alone: MILLRACE_SEED=3',
      ].join('\n'),
    );
    expect((failure as Error).cause).toMatchObject({ message: 'bug in a timer' });
  });

  test('a rejection in the background of a node', async () => {
    const world = simulate(1);
    const node = world.node('a');
    node.start(async () => {
      await node.clock.sleep(10);
      throw new Error('bug in a loop');
    });
    await expect(world.runFor(100)).rejects.toThrow('bug in a loop');
  });

  test('a timer that sets itself again without delay', async () => {
    const world = simulate(1, { quietTurns: 1 });
    const again = () => void world.clock.after(0, again);
    again();
    await expect(world.runFor(1)).rejects.toThrow('more than 100000 timers ran at one instant');
  });

  test('code that never becomes idle', async () => {
    const world = simulate(1);
    const controller = new AbortController();
    world.node('a').start(async () => {
      while (!controller.signal.aborted) {
        world.random.next();
        await nextTurn();
      }
    });
    await expect(world.runFor(1)).rejects.toThrow('the code is still active after 100000 turns');
    controller.abort();
  });
});

describe('real work', () => {
  test('is waited for while virtual time stands still', async () => {
    const world = simulate(1);
    const seen: string[] = [];
    world.node('a').start(async () => {
      const text = await world.pending(realSleep(20, 'written'), 'disk');
      seen.push(`${text} at ${world.clock.monotonic()}`);
      await world.clock.sleep(5);
      await world.pending(realSleep(5));
      seen.push(`again at ${world.clock.monotonic()}`);
    });
    world.clock.after(1, () => seen.push('timer'));
    await world.runFor(10);
    expect(seen).toEqual(['written at 0', 'timer', 'again at 5']);
  });

  test('returns results in call order, however long each takes', async () => {
    const world = simulate(1);
    const seen: number[] = [];
    const delays = [30, 1, 15, 5];
    delays.forEach((delay, index) => {
      world.node('a').start(async () => {
        await world.pending(realSleep(delay));
        seen.push(index);
      });
    });
    await world.settle();
    expect(seen).toEqual([0, 1, 2, 3]);
  });

  test('may fail, and the failure arrives', async () => {
    const world = simulate(1);
    const broken = world.pending(
      realSleep(1).then(() => {
        throw new Error('disk full');
      }),
    );
    await expect(world.complete(broken)).rejects.toThrow('disk full');
  });

  test('that waits for virtual time is named instead of hanging the test', async () => {
    const world = simulate(1, { workLimitMs: 20 });
    void world.pending(world.clock.sleep(1000), 'store.insert');
    await expect(world.runFor(1)).rejects.toThrow('registered work does not end: store.insert');
  });
});

describe('nodes', () => {
  test('a crash drops the timers and the promises of the node, and of no other', async () => {
    const world = simulate(1);
    const [a, b] = [world.node('a'), world.node('b')];
    const seen: string[] = [];
    for (const node of [a, b]) {
      node.clock.after(50, () => seen.push(`${node.name} timer`));
      node.start(async () => {
        await node.clock.sleep(60);
        seen.push(`${node.name} slept`);
      });
      node.start(async () => {
        await node.pending(realSleep(10));
        await node.clock.sleep(70);
        seen.push(`${node.name} wrote`);
      });
    }
    world.clock.after(40, () => a.crash());
    await world.runFor(1000);
    expect(seen).toEqual(['b timer', 'b slept', 'b wrote']);
    expect(a.alive).toBe(false);
    a.clock.after(1, () => seen.push('ghost'));
    await world.runFor(1000);
    expect(seen).toHaveLength(3);
  });

  test('a node lives again under the same name, with other chance than before', () => {
    const world = simulate(1);
    const first = world.node('a');
    expect(world.node('a')).toBe(first);
    first.crash();
    first.crash();
    const second = world.node('a');
    expect([first.life, second.life, second.alive]).toEqual([1, 2, true]);
    expect(second.random.next()).not.toBe(first.random.next());
    expect(() => world.node('')).toThrow('A node needs a name');
  });

  test('an error that a crashed node runs into afterwards is nobody’s failure', async () => {
    const world = simulate(1);
    const node = world.node('a');
    node.start(async () => {
      await world.clock.sleep(10);
      throw new Error('too late');
    });
    world.clock.after(5, () => node.crash());
    await world.runFor(100);
    expect(node.alive).toBe(false);
  });

  test('which node goes first at one instant differs from instant to instant', async () => {
    const world = simulate(1);
    const order: string[] = [];
    for (let at = 1; at <= 50; at++) {
      for (const name of ['a', 'b']) world.node(name).clock.after(at, () => order.push(name));
    }
    await world.runFor(50);
    const firsts = order.filter((_, index) => index % 2 === 0);
    expect(new Set(firsts).size).toBe(2);
  });
});
