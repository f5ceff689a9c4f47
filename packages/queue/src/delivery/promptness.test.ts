import { expect, test } from 'vitest';
import { answer, newScene } from './delivery.test-support.js';

/** Due times are read at most this much later than requested. */
const maxDelayMs = 20;

test.each(['none', 'group'] as const)(
  'tasks start on time, whatever the order of due times (ordering: %s)',
  async (mode) => {
    const { world, store, putQueue, submit, outbound } = await newScene();
    const queues = ['a', 'b', 'c'];
    const retry = { initial_backoff_ms: 40, max_backoff_ms: 5_000, multiplier: 3 };
    for (const queue of queues) {
      await putQueue({ retry, circuit_breaker: { enabled: false }, ordering: { mode } }, queue);
    }
    const due = new Map<string, number>();
    const lateness: number[] = [];
    const { claimDue, settle } = store;
    store.claimDue = async (request) => {
      const tasks = await claimDue.call(store, request);
      for (const { id } of tasks) lateness.push(request.now - due.get(id)!);
      return tasks;
    };
    store.settle = async (all) => {
      for (const { id, verdict } of all) if ('dueAt' in verdict) due.set(id, verdict.dueAt);
      return settle.call(store, all);
    };
    outbound.handler = async () => {
      await world.clock.sleep(world.between([0, 5]));
      return answer(world.chance(0.4) ? 503 : 200);
    };
    for (let i = 0; i < 150; i++) {
      const dueAt = world.clock.now() + world.between([0, 3_000]);
      const id = world.random.ulid(world.clock.now());
      due.set(id, dueAt);
      // Each in a group of its own, so that none has to wait for another.
      await submit({ id, queue: queues[i % 3]!, dueAt, groupKey: `group ${i}` });
      await world.runFor(world.between([0, 30]));
    }
    await world.runFor(60_000);
    expect(lateness.length).toBeGreaterThan(200);
    expect(Math.min(...lateness)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...lateness)).toBeLessThanOrEqual(maxDelayMs);
  },
);
