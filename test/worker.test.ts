import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openQueue } from '@millrace/queue';
import {
  connectQueue,
  createWorker,
  defineTasks,
  PermanentError,
  RetryLater,
  TaskFailed,
  ValidationError,
  WaitTimeout,
  type TaskHandlers,
} from '@millrace/worker';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { createDelivery } from '../packages/queue/src/delivery/index.js';
import {
  makeQueue,
  newEmbeddedStore,
  startTestServer,
  tokens,
} from '../packages/queue/test/support/server.js';

const tasks = defineTasks({
  'mail.send': z.object({ to: z.string() }),
  'mail.drop': z.unknown(),
});
type Handlers = TaskHandlers<NonNullable<(typeof tasks)['~types']>>;

const soon = { timeout: 60_000, interval: 20 };

async function start(config: Record<string, unknown> = {}) {
  const server = await startTestServer({ store: await newEmbeddedStore(), createDelivery });
  await makeQueue(server, 'mail', { callback: { protocol: 'pull' }, ...config });
  const queue = connectQueue({ url: server.url, token: tokens.submitter }, tasks);
  const work = (handlers: Partial<Handlers>, options: { leaseMs?: number } = {}) => {
    const errors: unknown[] = [];
    const worker = createWorker(
      {
        url: server.url,
        token: tokens.worker,
        queue: 'mail',
        onError: (error) => errors.push(error),
        ...options,
      },
      tasks,
      { 'mail.send': () => undefined, 'mail.drop': () => undefined, ...handlers },
    );
    onTestFinished(() => worker.stop({ timeoutMs: 0 }));
    return { worker, errors };
  };
  return { server, queue, work };
}

test('worker: claims tasks, runs their handlers and settles them', async () => {
  const { queue, work } = await start();
  const seen: string[] = [];
  const { worker, errors } = work({ 'mail.send': ({ payload }) => void seen.push(payload.to) });
  const { task } = await queue.submitAndWait('mail', 'mail.send', { to: 'ada' });
  expect([seen, task.status, task.attempt]).toEqual([['ada'], 'SUCCEEDED', 1]);
  const many = Array.from({ length: 120 }, (_, i) =>
    queue.submit('mail', 'mail.send', { to: String(i) }),
  );
  await Promise.all(many);
  await expect.poll(() => seen.length, soon).toBe(121);
  await worker.stop();
  expect(worker.running).toBe(0);
  expect(errors).toEqual([]);
});

test('worker: what a handler returns is the result, and its progress is kept', async () => {
  const { queue, work } = await start();
  const { errors } = work({
    'mail.send': async ({ payload, progress }) => {
      await progress({ percent: 50, message: 'half' });
      return { sentTo: payload.to };
    },
    'mail.drop': () => 'x'.repeat(70_000),
  });
  const { task, result } = await queue.submitAndWait('mail', 'mail.send', { to: 'ada' });
  expect(result).toEqual({ sentTo: 'ada' });
  expect(task).toMatchObject({ progress: { percent: 50, message: 'half' } });
  const tooLarge = queue.submitAndWait('mail', 'mail.drop', 'any');
  await expect(tooLarge).rejects.toThrow('at most 65536');
  expect(errors).toEqual([]);
});

test('worker: an error is retried and kept with its name, message and stack', async () => {
  const { queue, work } = await start({ retry: { initial_backoff_ms: 10 } });
  work({
    'mail.send': ({ task }) => {
      if (task.attempt === 1) throw new TypeError('the mailbox is full');
    },
  });
  const { task } = await queue.submitAndWait('mail', 'mail.send', { to: 'ada' });
  expect(task.attempts).toMatchObject([
    { outcome: 'FAILED', errorType: 'TypeError', message: 'the mailbox is full' },
    { outcome: 'SUCCEEDED' },
  ]);
  expect(task.attempts[0]!.responseSnippet).toMatch(/^TypeError: the mailbox is full\n +at /);
});

test('worker: PermanentError and a bad payload end the task, RetryLater delays it', async () => {
  const { server, queue, work } = await start();
  work({
    'mail.drop': ({ payload, task }) => {
      if (payload === 'never') throw new PermanentError('no such mailbox');
      if (task.attempt === 1) throw new RetryLater({ afterMs: 40 });
    },
  });
  const never = queue.submitAndWait('mail', 'mail.drop', 'never');
  await expect(never).rejects.toThrow(TaskFailed);
  await expect(never).rejects.toMatchObject({ errorType: 'PermanentError' });
  const other = connectQueue(
    { url: server.url, token: tokens.submitter },
    defineTasks<{ 'mail.send': { to: number } }>(),
  );
  const bad = other.submitAndWait('mail', 'mail.send', { to: 7 });
  await expect(bad).rejects.toThrow(/PermanentError: The payload of mail\.send is not valid: to: /);
  const { task } = await queue.submitAndWait('mail', 'mail.drop', 'later');
  expect(task.attempts[0]).toMatchObject({ errorType: 'RetryLater', retryAfterMs: 40 });
});

test('client: refuses a payload that fails its schema, and submits nothing', async () => {
  const { server, queue } = await start();
  const bad = queue.submit('mail', 'mail.send', { to: 7 as never });
  await expect(bad).rejects.toThrow(ValidationError);
  await expect(bad).rejects.toMatchObject({ issues: [{ path: 'to' }] });
  expect((await server.store.counts('mail')).pending).toBe(0);
});

test('client: submitAndWait gives up after its time, and the task goes on', async () => {
  const { queue } = await start();
  const waiting = queue.submitAndWait('mail', 'mail.send', { to: 'ada' }, { timeoutMs: 50 });
  const error: unknown = await waiting.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(WaitTimeout);
  expect((await queue.get((error as WaitTimeout).taskId)).status).toBe('PENDING');
});

test('worker: extends the leases of long work', async () => {
  const { server, queue, work } = await start();
  let runs = 0;
  const slow: Handlers['mail.send'] = async ({ task: { id } }) => {
    runs++;
    const leaseEnd = async () => {
      const stored = await server.store.getTask(id);
      return stored && 'lease' in stored ? stored.lease!.expiresAt : 0;
    };
    const claimed = await leaseEnd();
    await expect.poll(leaseEnd, soon).toBeGreaterThan(claimed);
  };
  work({ 'mail.send': slow }, { leaseMs: 15_000 });
  const { task } = await queue.submitAndWait('mail', 'mail.send', { to: 'ada' });
  expect([runs, task.attempts.map(({ outcome }) => outcome)]).toEqual([1, ['SUCCEEDED']]);
});

test('worker: a lost lease aborts the signal, and the task is not settled', async () => {
  const { server, queue, work } = await start();
  let reason: unknown;
  work(
    {
      'mail.send': async ({ signal, task }) => {
        if (task.attempt > 1) return;
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        reason = signal.reason;
        signal.throwIfAborted();
      },
    },
    { leaseMs: 9_000 },
  );
  const { id } = await queue.submit('mail', 'mail.send', { to: 'ada' });
  await expect.poll(async () => (await queue.get(id)).status, soon).toBe('IN_FLIGHT');
  const stored = await server.store.getTask(id);
  if (!stored || !('lease' in stored)) throw new Error('no lease');
  const now = server.clock.now();
  await server.store.settle([
    {
      id,
      token: stored.lease!.token,
      now,
      verdict: { kind: 'retry', dueAt: now },
      attempt: { ...noAttempt, startedAt: now, endedAt: now },
    },
  ]);
  await expect.poll(async () => (await queue.get(id)).status, soon).toBe('SUCCEEDED');
  await expect.poll(() => String(reason), soon).toContain('is lost');
});

const noAttempt = {
  attempt: 1,
  redrive: 0,
  startedAt: 0,
  endedAt: 0,
  durationMs: 0,
  outcome: 'FAILED' as const,
  errorType: 'TEST',
  message: null,
  httpStatus: null,
  retryAfterMs: null,
  nextAttemptAt: null,
  responseSnippet: null,
  url: null,
  remoteIp: null,
  nodeId: 'test',
  traceId: null,
};

test('worker: stop waits for running tasks, then hands back what is left', async () => {
  const { queue, work } = await start();
  const { worker } = work({
    'mail.drop': ({ signal }) =>
      new Promise((_, reject) =>
        signal.addEventListener('abort', () => reject(new Error('stopped'))),
      ),
  });
  const { id } = await queue.submit('mail', 'mail.drop', 1);
  await expect.poll(() => worker.running, soon).toBe(1);
  await worker.stop({ timeoutMs: 10 });
  expect(await queue.get(id)).toMatchObject({ status: 'PENDING', attempt: 0 });
});

test('openQueue: refuses a name that no queue can have', async () => {
  const data = mkdtempSync(join(tmpdir(), 'millrace-open-'));
  onTestFinished(() => rmSync(data, { recursive: true, force: true }));
  const queue = await openQueue({ data, autoCreate: true }, tasks);
  onTestFinished(() => queue.close());
  for (const name of ['', 'Mail', 'mail box', '-mail', 'm'.repeat(129)]) {
    await expect(queue.createQueue(name)).rejects.toMatchObject({ status: 422 });
    await expect(queue.submit(name, 'mail.send', { to: 'ada' })).rejects.toThrow('cannot name');
  }
  await queue.createQueue('m'.repeat(128));
});

test('openQueue: keeps tasks over a restart, and creates queues by name if asked', async () => {
  const data = mkdtempSync(join(tmpdir(), 'millrace-open-'));
  onTestFinished(() => rmSync(data, { recursive: true, force: true }));
  const first = await openQueue({ data, autoCreate: true }, tasks);
  const { id } = await first.submit('mail', 'mail.send', { to: 'ada' });
  await first.close();
  const again = await openQueue({ data }, tasks);
  const seen: string[] = [];
  again.createWorker(
    { queue: 'mail' },
    { 'mail.send': ({ payload }) => void seen.push(payload.to), 'mail.drop': () => undefined },
  );
  await expect.poll(async () => (await again.get(id)).status, soon).toBe('SUCCEEDED');
  await again.createQueue('other', { retry: { maxAttempts: 1 } });
  again.createWorker(
    { queue: 'other' },
    {
      'mail.send': () => Promise.reject(new Error('no')),
      'mail.drop': () => undefined,
    },
  );
  await expect(again.submitAndWait('other', 'mail.send', { to: 'eve' })).rejects.toThrow('no');
  await again.close();
  expect(seen).toEqual(['ada']);
});
