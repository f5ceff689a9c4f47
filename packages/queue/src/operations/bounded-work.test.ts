import { systemClock } from '@millrace/kit/clock';
import { systemRandom } from '@millrace/kit/random';
import { expect, test } from 'vitest';
import { WorkerTable, workerStats } from '../delivery/worker-activity.js';
import type { Row, RowBatch } from '../storage/port/task-store.js';
import { anonymous, type QueueContext } from './base/context.js';
import { createJob } from './jobs.js';
import { TaskWaits } from './base/task-waits.js';

test('get task: a principal waits for at most 10,000 tasks at a time', async () => {
  const store = { onEnded: () => () => undefined, onCancelled: () => () => undefined };
  const load = { enter: () => undefined, leave: () => undefined };
  const waits = new TaskWaits({ store, clock: systemClock, load });
  const wait = (principal: string) =>
    waits.until('01JD3Z8Q4M7X2N5V9RTBKWCH6E', principal, 60_000, () => Promise.resolve(false));
  const waiting = Array.from({ length: 10_000 }, () => wait('ada'));
  await expect(wait('ada')).rejects.toMatchObject({ code: 'RATE_LIMITED' });
  const other = wait('bob');
  waits.close();
  await Promise.all([...waiting, other]);
  // All have left.
  await wait('ada');
});

test('job: a queue runs at most 100, and the oldest ended ones above 1,000 are forgotten', async () => {
  const stateOf = (status: string, index: number): Row => ({
    table: 'job',
    queue: 'mail',
    key: `J${String(index).padStart(5, '0')}`,
    value: { status },
    revision: 1,
    createdAt: 0,
  });
  let states: Row[] = [];
  const deleted: string[] = [];
  const context = {
    store: {
      getQueue: async () => ({ name: 'mail' }),
      listRows: async () => states,
      writeRows: async ({ puts = [], removals = [] }: RowBatch) => {
        for (const { from } of removals) deleted.push(from);
        return { kind: 'written', rows: puts.map((put) => ({ ...put, createdAt: 0 })) };
      },
    },
    clock: systemClock,
    random: systemRandom,
    background: { jobsChanged: () => undefined },
    checks: { purge: { read: () => ({ filter: {} }) } },
  } as unknown as QueueContext;
  const create = () => createJob(context, anonymous, { queue: 'mail', action: 'purge', body: {} });
  states = Array.from({ length: 100 }, (_, i) => stateOf('running', i));
  await expect(create()).rejects.toMatchObject({ code: 'RATE_LIMITED' });
  states = Array.from({ length: 1_002 }, (_, i) => stateOf(i === 0 ? 'running' : 'done', i));
  expect((await create()).job).toMatchObject({ status: 'running' });
  expect(deleted).toEqual(['J00001', 'J00002']);
});

test('workers: those seen longest ago are forgotten above 20,000', () => {
  const table = new WorkerTable();
  const note = (worker: number, seenAt: number) => ({
    queue: 'mail',
    key: `k${worker}`,
    identity: { worker: `w${worker}`, principal: 'ada', remoteIp: null },
    seenAt,
    claimed: 0,
    completed: 0,
    failed: 0,
    returned: 0,
  });
  for (let i = 0; i < 20_000; i += 5_000) {
    table.add(
      Array.from({ length: 5_000 }, (_, n) => note(i + n, 1_000)),
      1_000,
    );
  }
  table.add([note(0, 2_000), note(20_000, 2_000)], 2_000);
  const workers = workerStats(table.of('mail'), 0).map(({ worker }) => worker);
  expect(workers).toHaveLength(20_000);
  expect(workers).toContain('w0');
  expect(workers).not.toContain('w1');
});
