import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from '@millrace/engine';
import { openQueue } from '@millrace/queue';
import { defineTasks, ValidationError } from '@millrace/worker';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';

const tasks = defineTasks({
  'mail.send': { payload: z.object({ to: z.string() }), queue: 'mail' },
});
const soon = { timeout: 60_000, interval: 10 };
const directory = mkdtempSync(join(tmpdir(), 'mr-open-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

async function manual() {
  const queue = await openQueue({ memory: true, clock: 'manual' }, tasks);
  onTestFinished(() => queue.close());
  return queue;
}

test('memory queue: runs 1,000 tasks in under a second of its own time', async () => {
  const queue = await manual();
  let count = 0;
  queue.createWorker({ queue: 'mail', concurrency: 100 }, { 'mail.send': () => void count++ });
  const items = Array.from({ length: 1_000 }, (_, i) => ({
    ref: 'mail.send' as const,
    payload: { to: String(i) },
  }));
  const before = process.cpuUsage();
  await queue.submitMany(items);
  await queue.drain();
  const { user, system } = process.cpuUsage(before);
  expect(count).toBe(1_000);
  // CPU time, because a busy machine must not fail a test.
  expect((user + system) / 1e6).toBeLessThan(2);
});

test('advance: runs delayed tasks, retries and schedules when their time comes, in order', async () => {
  const queue = await manual();
  const seen: string[] = [];
  await queue.configure('mail', { retry: { maxAttempts: 3, initialBackoffMs: 60_000 } });
  queue.createWorker(
    { queue: 'mail', onError: () => undefined },
    {
      'mail.send': ({ payload, task }) => {
        seen.push(payload.to);
        if (payload.to === 'flaky' && task.attempt === 1) throw new Error('not yet');
      },
    },
  );
  await queue.submit('mail.send', { to: 'later' }, { delayMs: 86_400_000 });
  await queue.submit('mail.send', { to: 'flaky' });
  await queue.drain();
  expect(seen).toEqual(['flaky']);
  await queue.schedules.put('hourly', {
    everyMs: 3_600_000,
    task: { ref: 'mail.send', payload: { to: 'hourly' } },
  });
  await queue.advance('1 hour');
  expect(seen.filter((to) => to === 'flaky')).toHaveLength(2);
  await queue.advance('2 days');
  expect(seen.filter((to) => to === 'later')).toHaveLength(1);
  const hourly = seen.filter((to) => to === 'hourly').length;
  expect(hourly).toBeGreaterThanOrEqual(48);
  expect(hourly).toBeLessThanOrEqual(50);
  await expect(queue.advance('soon')).rejects.toBeInstanceOf(ValidationError);
});

test('drain: throws what handlers threw if asked, and forgets it', async () => {
  const queue = await manual();
  const boom = new RangeError('boom');
  queue.createWorker(
    { queue: 'mail', onError: () => undefined },
    {
      'mail.send': ({ payload }) => {
        if (payload.to !== 'ada') throw boom;
      },
    },
  );
  await queue.submit('mail.send', { to: 'eve' });
  await queue.drain();
  await queue.drain({ throwErrors: true });
  await queue.submit('mail.send', { to: 'eve' });
  await expect(queue.drain({ throwErrors: true })).rejects.toBe(boom);
  await queue.submit('mail.send', { to: 'ada' });
  await queue.drain({ throwErrors: true });
});

test('drain: ends when nobody can run what is due', async () => {
  const queue = await manual();
  await queue.submit('mail.send', { to: 'ada' });
  await queue.drain();
  const worker = queue.createWorker({ queue: 'mail' }, { 'mail.send': () => undefined });
  worker.pause();
  await queue.drain();
  expect((await queue.stats('mail')).pending).toBe(1);
  worker.resume();
  await queue.drain();
  expect((await queue.stats('mail')).pending).toBe(0);
  const waiting = queue.submitAndWait(
    'mail.send',
    { to: 'ada' },
    { timeoutMs: 20, delayMs: 1_000 },
  );
  await expect(waiting).rejects.toThrow('did not end');
});

test('openQueue: tasks of a crashed process are due again at once', async () => {
  const data = join(directory, 'crash');
  const first = await openQueue({ data }, tasks);
  onTestFinished(() => first.close());
  let end: () => void = () => undefined;
  const worker = first.createWorker(
    { queue: 'mail' },
    { 'mail.send': () => new Promise<void>((resolve) => (end = resolve)) },
  );
  const { id } = await first.submit('mail.send', { to: 'ada' });
  await expect.poll(() => worker.running, soon).toBe(1);
  // What a process that dies now leaves behind.
  const left = join(directory, 'left');
  cpSync(data, left, { recursive: true, filter: (file) => !file.endsWith('LOCK') });
  end();
  const again = await openQueue({ data: left }, tasks);
  onTestFinished(() => again.close());
  again.createWorker({ queue: 'mail' }, { 'mail.send': ({ task }) => task.attempt });
  await expect.poll(async () => (await again.get(id)).status, soon).toBe('SUCCEEDED');
  const task = await again.get(id);
  expect(task).toMatchObject({
    result: 2,
    attempts: [{ outcome: 'INTERRUPTED', errorType: 'WORKER_GONE' }, { outcome: 'SUCCEEDED' }],
  });
  const [crashed, next] = task.attempts;
  // Not after the lease of 30 s.
  expect(Date.parse(next!.startedAt) - Date.parse(crashed!.startedAt)).toBeLessThan(25_000);
});

test('submitIn: stores records and tasks in one commit, or none', async () => {
  const db = await open(join(directory, 'shared'));
  onTestFinished(() => db.close());
  const queue = await openQueue({ database: db }, tasks);
  onTestFinished(() => queue.close());
  const seen: string[] = [];
  queue.createWorker(
    { queue: 'mail' },
    { 'mail.send': ({ payload }) => void seen.push(payload.to) },
  );
  const id = await db.transact((tx) => {
    tx.collection('orders').put('o1', { paid: true });
    return queue.submitIn(tx, 'mail.send', { to: 'ada' });
  });
  await expect.poll(() => seen, soon).toEqual(['ada']);
  expect((await queue.get(id)).handlerRef).toBe('mail.send');
  const undone = db.transact((tx) => {
    queue.submitIn(tx, 'mail.send', { to: 'eve' });
    throw new Error('no stock');
  });
  await expect(undone).rejects.toThrow('no stock');
  const bad = (payload: object, options = {}) =>
    db.transact((tx) => queue.submitIn(tx, 'mail.send', payload as never, options));
  await expect(bad({ to: 7 })).rejects.toBeInstanceOf(ValidationError);
  await expect(bad({ to: 'x' }, { queue: 'none' })).rejects.toMatchObject({
    code: 'QUEUE_NOT_FOUND',
  });
  await expect(bad({ to: 'x' }, { delayMs: -1 })).rejects.toThrow(/^delayMs must/);
  const late = await db.transact((tx) =>
    queue.submitIn(tx, 'mail.send', { to: 'late' }, { delayMs: 50 }),
  );
  await expect.poll(async () => (await queue.get(late)).status, soon).toBe('SUCCEEDED');
  expect(seen).toEqual(['ada', 'late']);
  expect(await queue.list({ queue: 'mail' })).toHaveLength(2);
});

test('submitIn: needs a shared database', async () => {
  const queue = await manual();
  expect(() => queue.submitIn({ rows: {} as never }, 'mail.send', { to: 'ada' })).toThrow(
    'shares the database',
  );
});

test.each([
  ['./data', "openQueue takes options, such as { data: './data' }"],
  [undefined, 'openQueue takes options'],
  [null, 'openQueue takes options'],
  [{ data: 5 }, 'data is the path of a folder'],
  [{}, 'Say where the tasks are'],
  [{ memory: true, data: './data' }, 'Say where the tasks are, once'],
  [{ memory: true, clock: 'fast' }, "clock is 'manual'"],
  [{ memory: true, autocreate: true }, 'autocreate is not an option of openQueue; use data'],
])('openQueue: refuses %o', async (options, message) => {
  await expect(openQueue(options as never, tasks)).rejects.toThrow(message);
});

test.each([undefined, null, {}, { 'mail.send': {} }])(
  'openQueue: refuses tasks %o',
  async (given) => {
    const opening = openQueue({ memory: true }, given as never);
    await expect(opening).rejects.toThrow('is what defineTasks returns');
  },
);
