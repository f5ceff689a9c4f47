import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { openQueue } from '@millrace/queue';
import {
  ApiError,
  connectQueue,
  defineTasks,
  TaskFailed,
  WaitTimeout,
  ValidationError,
} from '@millrace/worker';
import type { Queue, TaskHandlers } from '@millrace/worker';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { createDelivery } from '../packages/queue/src/delivery/index.js';
import type { TaskStore } from '../packages/queue/src/storage/port/task-store.js';
import { openPostgresStore } from '../packages/queue/src/storage/postgres/open.js';
import { startPostgres } from '../packages/queue/test/postgres/postgres-server.js';
import { campaignSize } from './support/campaign.js';
import {
  newEmbeddedStore,
  startTestServer,
  tokens,
} from '../packages/queue/test/support/server.js';

/* One suite for the queue in process, in memory and on a server: all are the same `Queue`. */

const tasks = defineTasks({
  'mail.send': {
    payload: z.object({ to: z.string(), copies: z.number().optional() }),
    result: z.object({ messageId: z.string() }),
    queue: 'mail',
  },
  'mail.drop': z.unknown(),
});
type Types = NonNullable<(typeof tasks)['~types']>;
type Handlers = TaskHandlers<Types>;

const fine = () => ({ messageId: 'm1' });
const soon = { timeout: 60_000, interval: 20 };
const ends: (() => unknown)[] = [];
afterAll(async () => {
  for (const end of ends.toReversed()) await end();
});

const onEnd = (end: () => unknown) => void ends.push(end);

async function serve(given?: TaskStore): Promise<string> {
  const store = given ?? (await newEmbeddedStore(onEnd));
  return (await startTestServer({ store, createDelivery, onEnd })).url;
}

async function postgresStore(): Promise<TaskStore> {
  const server = await startPostgres();
  onEnd(() => server.remove());
  const world = { clock: systemClock, random: systemRandom, log: silentLog };
  return openPostgresStore(await server.database('code'), world);
}

const ways = {
  'in process': async () => {
    const data = mkdtempSync(join(tmpdir(), 'mr-code-'));
    ends.push(() => rmSync(data, { recursive: true, force: true }));
    return openQueue({ data }, tasks);
  },
  'in memory': () => openQueue({ memory: true }, tasks),
  'on a server': async () => connectQueue({ url: await serve(), token: tokens.root }, tasks),
  'on a server by REST': async () =>
    connectQueue({ url: await serve(), token: tokens.root, stream: false }, tasks),
  'on a server with PostgreSQL': async () =>
    connectQueue({ url: await serve(await postgresStore()), token: tokens.root }, tasks),
} satisfies Record<string, () => Promise<Queue<Types>>>;

const further: readonly string[] = [
  'in memory',
  'on a server by REST',
  'on a server with PostgreSQL',
];
for (const way of Object.keys(ways) as (keyof typeof ways)[]) {
  const tags = further.includes(way) ? { tags: 'campaign-transport' } : {};
  describe(`queue ${way}:`, tags, () => testQueue(way));
}

function testQueue(way: keyof typeof ways): void {
  let queue: Queue<Types>;
  let count = 0;

  beforeAll(async () => {
    queue = await ways[way]();
    ends.push(() => queue.close());
    await queue.configure('mail');
  });

  /** A queue of the test's own. */
  async function fresh(config: Parameters<typeof queue.configure>[1] = {}): Promise<string> {
    const name = `mail-${++count}`;
    await queue.configure(name, config);
    return name;
  }

  function work(name: string, handlers: Partial<Handlers> = {}) {
    const worker = queue.createWorker(
      { queue: name, onError: () => undefined },
      {
        'mail.send': () => ({ messageId: 'm1' }),
        'mail.drop': () => undefined,
        ...handlers,
      },
    );
    onTestFinished(() => worker.stop({ timeoutMs: 0 }));
    return worker;
  }

  test('submits by the queue of the definition, and gives the result in its type', async () => {
    work('mail');
    const { task, result } = await queue.submitAndWait('mail.send', { to: 'ada' });
    expect(result.messageId).toBe('m1');
    expect(task).toMatchObject({ queue: 'mail', handlerRef: 'mail.send', status: 'SUCCEEDED' });
    const found = await queue.get(task.id);
    expect(found).toMatchObject({ payload: { to: 'ada' }, totalAttempts: 1 });
    expect(found.handlerRef === 'mail.send' && found.result?.messageId).toBe('m1');
    expect(await queue.waitFor(task.id)).toMatchObject({ task: { id: task.id }, result });
    const later = await queue.submit('mail.send', { to: 'bob' }, { delayMs: 60_000 });
    const ending = queue.waitFor(later.id, { timeoutMs: 10 });
    await expect(ending).rejects.toBeInstanceOf(WaitTimeout);
  });

  test('refuses an invalid payload at the producer, with its path', async () => {
    const bad = queue.submit('mail.send', { to: 7 as never });
    await expect(bad).rejects.toBeInstanceOf(ValidationError);
    await expect(bad).rejects.toMatchObject({ name: 'ValidationError', issues: [{ path: 'to' }] });
    const unknown = queue.submit('mail.sent' as 'mail.send', { to: 'ada' });
    await expect(unknown).rejects.toThrow('There is no task mail.sent');
    const nowhere = queue.submit('mail.drop', 1);
    await expect(nowhere).rejects.toThrow('The task mail.drop has no queue');
  });

  test('names faults as the call does', async () => {
    const bad = queue.submit('mail.send', { to: 'ada' }, { delayMs: -1 });
    await expect(bad).rejects.toBeInstanceOf(ApiError);
    const error = (await bad.catch((reason: unknown) => reason)) as ApiError;
    expect(error).toMatchObject({ code: 'INVALID_TASK', status: 422 });
    expect(error.message).toMatch(/^delayMs must/);
    expect(error.body).toMatchObject({ errors: [{ path: 'delayMs' }] });
    const name = await fresh();
    const schedule = { queue: name, everyMs: 1, task: { ref: 'mail.drop', payload: 1 } } as const;
    await expect(queue.schedules.put('fast', schedule)).rejects.toThrow(/everyMs must/);
  });

  test('ends a task DEAD whose result fails its schema', async () => {
    const name = await fresh();
    work(name, { 'mail.send': () => ({ messageId: 7 }) as never });
    const waiting = queue.submitAndWait(name, 'mail.send', { to: 'ada' });
    await expect(waiting).rejects.toBeInstanceOf(TaskFailed);
    await expect(waiting).rejects.toMatchObject({ errorType: 'INVALID_RESULT' });
  });

  test('submits thousands of tasks at once, with a result for each', async () => {
    const count = campaignSize({ quick: 2_000, full: 10_000 });
    const name = await fresh();
    const items = Array.from({ length: count }, (_, i) => ({
      ref: 'mail.send' as const,
      payload: { to: i === count / 2 ? (7 as never) : String(i) },
      queue: name,
      ...(i === count - 1 && { priority: 99 }),
    }));
    const results = await queue.submitMany(items);
    expect(results).toHaveLength(count);
    expect(results.map(({ index }) => index)).toEqual(items.map((_, i) => i));
    const failed = results.filter(({ error }) => error);
    expect(failed).toMatchObject([
      { index: count / 2, error: { name: 'ValidationError' } },
      { index: count - 1, error: { code: 'INVALID_TASK' } },
    ]);
    expect((await queue.stats(name)).pending).toBe(count - 2);
    const more = Array.from({ length: 10_001 }, () => items[0]!);
    await expect(queue.submitMany(more)).rejects.toThrow('at most 10000');
    expect(await queue.cancel({ queue: name })).toEqual({ count: count - 2 });
  });

  test('lists tasks page by page, and queues', async () => {
    const name = await fresh();
    const items = Array.from({ length: 700 }, (_, i) => ({
      ref: 'mail.drop' as const,
      payload: i,
    }));
    const results = await queue.submitMany(items, { queue: name });
    const ids = results.map((result) => (result.error ? '' : result.id));
    const seen: string[] = [];
    for await (const task of queue.list({ queue: name, order: 'oldest' })) seen.push(task.id);
    expect(seen.toSorted()).toEqual(ids.toSorted());
    const some = await queue.list({ queue: name, status: ['PENDING'], limit: 3 });
    expect(some.map(({ handlerRef, maxAttempts }) => [handlerRef, maxAttempts > 0])).toEqual(
      Array.from({ length: 3 }, () => ['mail.drop', true]),
    );
    expect(await queue.list({ queue: name, status: 'DEAD' })).toEqual([]);
    const listed = (await queue.queues()).find((each) => each.name === name);
    expect(listed?.summary).toMatchObject({ inFlight: 0, pending: 700, paused: false });
    await expect(queue.list({ queue: 'none' })).rejects.toMatchObject({ code: 'QUEUE_NOT_FOUND' });
  });

  test('cancels one, several, and by filter', async () => {
    const name = await fresh();
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push((await queue.submit(name, 'mail.drop', i)).id);
    const one = await queue.cancel(ids[0]!, { reason: 'not wanted' });
    expect(one).toMatchObject({ status: 'DEAD', lastError: { message: 'not wanted' } });
    const gone = '01M7KQ1QMR8ZPGYBF8NGQZGP76';
    expect(await queue.cancel([ids[1]!, gone, ids[2]!])).toEqual({ count: 2 });
    expect(await queue.cancel({ queue: name, dryRun: true })).toEqual({ count: 2 });
    expect(await queue.cancel({ queue: name, handlerRef: 'mail.drop' })).toEqual({ count: 2 });
    expect(await queue.stats(name)).toMatchObject({ pending: 0, dlqDepth: 5 });
  });

  test('reschedules, updates and runs a waiting task now', async () => {
    const name = await fresh();
    const { id } = await queue.submit(name, 'mail.send', { to: 'ada' }, { delayMs: 3_600_000 });
    const at = new Date('2027-01-01T00:00:00.000Z');
    const hours = await queue.reschedule(id, at).catch((error: unknown) => error);
    // At most 30 days ahead, whatever day it is.
    if (hours instanceof Error) expect(hours.message).toContain('runAt must be at most 30 days');
    const moved = await queue.reschedule(id, 7_200_000);
    expect(Date.parse(moved.nextAttemptAt!) - Date.now()).toBeGreaterThan(7_000_000);
    expect(await queue.update(id, { priority: 9 })).toMatchObject({ id, priority: 9 });
    const now = await queue.runNow(id);
    expect(Date.parse(now.nextAttemptAt!)).toBeLessThanOrEqual(Date.now());
    work(name);
    await expect.poll(async () => (await queue.get(id)).status, soon).toBe('SUCCEEDED');
    await expect(queue.update(id, { priority: 1 })).rejects.toMatchObject({ status: 409 });
  });

  test('an id without text and a Date without a time are refused, and nothing is changed', async () => {
    const name = await fresh();
    await expect(queue.get('')).rejects.toThrow(/must|not/);
    const { id } = await queue.submit(name, 'mail.drop', 1, { delayMs: 3_600_000 });
    const noTime = new Date(Number.NaN);
    await expect(queue.reschedule(id, noTime)).rejects.toThrow('The Date is invalid');
    const options = { runAt: noTime };
    await expect(queue.submit(name, 'mail.drop', 2, options)).rejects.toThrow(
      'The Date is invalid',
    );
    expect(await queue.stats(name)).toMatchObject({ pending: 1 });
  });

  test('pauses, resumes, configures and deletes a queue', async () => {
    const name = await fresh();
    const config = await queue.configure(name, { retry: { maxAttempts: 3 } });
    expect(config).toMatchObject({ name, retry: { maxAttempts: 3 }, paused: false });
    expect((await queue.config(name)).retry.initialBackoffMs).toBeGreaterThan(0);
    await queue.pause(name);
    expect((await queue.config(name)).paused).toBe(true);
    work(name);
    const { id } = await queue.submit(name, 'mail.drop', 1);
    expect((await queue.get(id)).waitingFor).toBe('paused');
    await queue.resume(name);
    await expect.poll(async () => (await queue.get(id)).status, soon).toBe('SUCCEEDED');
    const other = await fresh();
    await queue.deleteQueue(other);
    await expect(queue.stats(other)).rejects.toMatchObject({ code: 'QUEUE_NOT_FOUND' });
  });

  test('keeps schedules with the payload of their task', async () => {
    const name = await fresh();
    const put = await queue.schedules.put('nightly', {
      queue: name,
      cron: '0 3 * * *',
      timeZone: 'Europe/Berlin',
      catchUp: 'none',
      task: { ref: 'mail.send', payload: { to: 'ada' } },
    });
    const expected = {
      name: 'nightly',
      queue: name,
      cron: '0 3 * * *',
      timeZone: 'Europe/Berlin',
      catchUp: 'none',
      paused: false,
      task: { ref: 'mail.send', payload: { to: 'ada' } },
    };
    expect(put).toMatchObject(expected);
    expect(await queue.schedules.get('nightly')).toMatchObject(expected);
    expect(await queue.schedules.get('nightly', { queue: name })).toMatchObject(expected);
    const [listed] = await queue.schedules.list(name);
    expect(listed).toMatchObject({ name: 'nightly', task: { ref: 'mail.send' } });
    expect(await queue.schedules.pause('nightly')).toMatchObject({ paused: true, nextRunAt: null });
    expect(await queue.schedules.resume('nightly')).toMatchObject({ paused: false });
    const { lastTaskId } = await queue.schedules.runNow('nightly');
    expect(await queue.get(lastTaskId!)).toMatchObject({ payload: { to: 'ada' } });
    await queue.schedules.delete('nightly');
    expect(await queue.schedules.list(name)).toEqual([]);
    await expect(queue.schedules.get('nightly')).rejects.toMatchObject({ status: 404 });
    const bad = { queue: name, everyMs: 60_000, task: { ref: 'mail.send', payload: {} as never } };
    await expect(queue.schedules.put('bad', bad as never)).rejects.toBeInstanceOf(ValidationError);
  });

  test('shows, redrives and purges dead tasks', async () => {
    const name = await fresh({ retry: { maxAttempts: 1 } });
    let isBroken = true;
    work(name, {
      'mail.drop': () => {
        if (isBroken) throw new TypeError('no template');
      },
    });
    for (let i = 0; i < 4; i++) await queue.submit(name, 'mail.drop', i);
    await expect.poll(async () => (await queue.stats(name)).dlqDepth, soon).toBe(4);
    const dead = await queue.dead.list({ queue: name, errorType: 'TypeError' });
    expect(new Set(dead.map(({ payload }) => payload))).toEqual(new Set([0, 1, 2, 3]));
    expect(await queue.dead.list({ queue: name, handlerRef: 'mail.send' })).toEqual([]);
    expect(await queue.dead.groups({ queue: name })).toMatchObject([
      { errorType: 'TypeError', handlerRef: 'mail.drop', count: 4 },
    ]);
    const filter = { errorType: 'TypeError' };
    expect(await queue.dead.redrive({ queue: name, filter, dryRun: true })).toEqual({ count: 4 });
    isBroken = false;
    const ids = [dead[0]!.id];
    expect(await queue.dead.redrive({ queue: name, ids, perSecond: 10 })).toEqual({ count: 1 });
    await expect.poll(async () => (await queue.get(ids[0]!)).status, soon).toBe('SUCCEEDED');
    expect(await queue.dead.purge({ queue: name, filter, dryRun: true })).toEqual({ count: 3 });
    expect(await queue.dead.purge({ queue: name, filter })).toEqual({ count: 3 });
    expect((await queue.stats(name)).dlqDepth).toBe(0);
    await expect(queue.dead.purge({ queue: name })).rejects.toMatchObject({
      code: 'INVALID_SELECTOR',
    });
  });

  test('gives events as they happen, and goes on after a cursor', async () => {
    const name = await fresh({ retry: { maxAttempts: 1 } });
    const events = queue.events({ queue: name });
    await events.ready;
    work(name, {
      'mail.drop': async ({ payload, progress }) => {
        await progress({ percent: 50 });
        if (payload === 'bad') throw new TypeError('no');
      },
    });
    const { id } = await queue.submit(name, 'mail.drop', 'good');
    const seen: string[] = [];
    let after = '';
    for await (const event of events) {
      expect(event).toMatchObject({ queue: name, taskId: id, handlerRef: 'mail.drop' });
      seen.push(event.type);
      if (event.type === 'started') after = event.cursor;
      if (event.type === 'succeeded') break;
    }
    expect(seen).toEqual(['submitted', 'started', 'progress', 'succeeded']);
    const again: string[] = [];
    for await (const event of queue.events({ queue: name, after })) {
      again.push(event.type);
      if (again.length === 1) await queue.submit(name, 'mail.drop', 'bad');
      if (event.type === 'dead') break;
    }
    expect(again.slice(0, 2)).toEqual(['progress', 'succeeded']);
    expect(again).toContain('submitted');
    const bad = queue.events({ after: 'nonsense' });
    await expect(bad.ready).rejects.toMatchObject({ status: 422 });
    await expect(async () => {
      for await (const _ of queue.events({ queue: 'none' })) break;
    }).rejects.toMatchObject({ code: 'QUEUE_NOT_FOUND' });
  });

  test('takes options of a task: attempts, backoff, labels, debounce and a new payload', async () => {
    const name = await fresh();
    const attempts: number[] = [];
    const worker = queue.createWorker(
      { queue: name, labels: ['gpu'], onError: () => undefined },
      {
        'mail.send': ({ payload }) => ({ messageId: payload.to }),
        'mail.drop': ({ task }) => {
          attempts.push(task.attempt);
          throw new TypeError('no');
        },
      },
    );
    onTestFinished(() => worker.stop({ timeoutMs: 0 }));
    const options = { maxAttempts: 2, backoff: { kind: 'fixed', ms: 10 } } as const;
    const twice = queue.submitAndWait(name, 'mail.drop', 1, options);
    await expect(twice).rejects.toBeInstanceOf(TaskFailed);
    expect(attempts).toEqual([1, 2]);
    const here = await queue.submitAndWait(name, 'mail.send', { to: 'a' }, { labels: ['gpu'] });
    expect(here.task).toMatchObject({ labels: ['gpu'], status: 'SUCCEEDED' });
    const other = await queue.submit(name, 'mail.send', { to: 'b' }, { labels: ['gpu', 'eu'] });
    expect((await queue.get(other.id)).status).toBe('PENDING');
    const debounce = { uniqueKey: 'k', debounceMs: 2_000 };
    const first = await queue.submit(name, 'mail.send', { to: 'first' }, debounce);
    const last = await queue.submitAndWait(name, 'mail.send', { to: 'last' }, debounce);
    expect([last.task.id, last.result.messageId]).toEqual([first.id, 'last']);
    const waiting = await queue.submit(name, 'mail.send', { to: 'old' }, { delayMs: 60_000 });
    await queue.update(waiting.id, { payload: { to: 'new' } });
    expect((await queue.get(waiting.id)).payload).toEqual({ to: 'new' });
    const wrong = queue.update(waiting.id, { payload: { to: 7 } as never });
    await expect(wrong).rejects.toBeInstanceOf(ValidationError);
    const bad = queue.submit(name, 'mail.send', { to: 'c' }, { debounceMs: 50 });
    await expect(bad).rejects.toThrow(/uniqueKey/);
  });

  test('starts the tasks of a FIFO group in the order of `submitMany`', async () => {
    const name = await fresh({ ordering: { mode: 'group' } });
    const items = Array.from({ length: 20 }, (_, payload) => ({
      ref: 'mail.drop' as const,
      payload,
    }));
    await queue.submitMany(items, { queue: name, groupKey: 'g' });
    const seen: unknown[] = [];
    work(name, { 'mail.drop': ({ payload }) => void seen.push(payload) });
    await expect.poll(() => seen.length, soon).toBe(20);
    expect(seen).toEqual(items.map(({ payload }) => payload));
  });

  test('stops waiting for a task when its signal aborts', async () => {
    const name = await fresh();
    const events = queue.events({ queue: name });
    await events.ready;
    const leave = new AbortController();
    const waiting = queue.submitAndWait(name, 'mail.drop', 1, { signal: leave.signal });
    waiting.catch(() => undefined);
    for await (const _ of events) break;
    leave.abort();
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError' });
  });

  test('shows the breaker of its handler with a waiting task', async () => {
    const name = await fresh({
      circuitBreaker: { enabled: true, minRequests: 2, openMs: 60_000 },
      retry: { initialBackoffMs: 10, maxBackoffMs: 10 },
    });
    const fail = () => {
      throw new TypeError('no');
    };
    work(name, { 'mail.drop': fail });
    const { id } = await queue.submit(name, 'mail.drop', 1);
    const breaker = async () => (await queue.get(id)).breaker;
    const nextProbeAt = expect.stringMatching(/Z$/) as string;
    const open = { handlerRef: 'mail.drop', state: 'open', nextProbeAt };
    await expect.poll(breaker, soon).toEqual(open);
  });

  test('cancels a task without its children, and lists the tasks of a flow', async () => {
    const name = await fresh();
    const parent = await queue.submit(name, 'mail.drop', 1);
    const child = await queue.submit(name, 'mail.drop', 2, { parentId: parent.id });
    await queue.cancel(parent.id, { cascade: false });
    expect((await queue.get(child.id)).status).toBe('PENDING');
    const { flowId } = await queue.flow().task('a', 'mail.drop', 1, { queue: name }).submit();
    expect(await queue.list({ queue: name, flowId })).toHaveLength(1);
    const faulty = queue.flow().task('a', 'mail.drop', 1, { queue: name, after: ['b'] });
    await expect(faulty.submit()).rejects.toMatchObject({ code: 'INVALID_FLOW', status: 422 });
  });

  test('refuses calls after it is closed, and ends its events', async () => {
    const other = await ways[way]();
    const events = other.events();
    await events.ready;
    const seen = (async () => {
      for await (const _ of events);
      return 'ended';
    })();
    await other.close();
    expect(await seen).toBe('ended');
    const gone = '01M7KQ1QMR8ZPGYBF8NGQZGP76';
    const calls = [
      () => other.submit('mail.send', { to: 'ada' }),
      () => other.submitMany([]),
      () => other.get(gone),
      async () => other.events(),
      async () => other.createWorker({ queue: 'mail' }, { 'mail.send': fine, 'mail.drop': fine }),
    ];
    for (const call of calls) await expect(call()).rejects.toThrow('The queue is closed.');
  });

  test('refuses what names a queue that nobody configured', async () => {
    const unknown = { code: 'QUEUE_NOT_FOUND', status: 404 };
    await expect(queue.submit('typo', 'mail.drop', 1)).rejects.toMatchObject(unknown);
    const many = await queue.submitMany([{ ref: 'mail.drop', payload: 1, queue: 'typo' }]);
    expect(many).toMatchObject([{ index: 0, error: unknown }]);
    await expect(queue.pause('typo')).rejects.toMatchObject(unknown);
    await expect(queue.get('01M7KQ1QMR8ZPGYBF8NGQZGP76')).rejects.toMatchObject({
      code: 'TASK_NOT_FOUND',
    });
  });
}
