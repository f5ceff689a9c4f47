import { afterEach, expect, test, vi } from 'vitest';
import { connectQueue } from './connect.js';
import { startWorker } from './task-worker.js';
import { defineTasks } from './tasks.js';
import type { ClaimedTask, QueueTransport } from './transport.js';
import { startRawWorker } from './worker.js';

afterEach(() => vi.restoreAllMocks());

const claimed = { id: 'T1', lease_token: 'l1' } as ClaimedTask;

function claimOf(task: ClaimedTask): QueueTransport['claim'] {
  const left = [task];
  return async (_queue, _request, signal) => {
    const tasks = left.splice(0);
    if (tasks.length > 0) return tasks;
    return new Promise((resolve) => signal.addEventListener('abort', () => resolve([])));
  };
}

/** A queue with one task, which is cancelled as soon as it runs. */
function cancellingQueue() {
  const settle = vi.fn<QueueTransport['settle']>(async () => []);
  const extend = vi.fn<QueueTransport['extend']>(async () => {
    throw Object.assign(new Error('The task T1 was cancelled.'), { code: 'LEASE_LOST' });
  });
  const claim = claimOf(claimed);
  return { transport: { claim, settle, extend } as unknown as QueueTransport, settle, extend };
}

test('worker: a cancelled task is reported once, in one line, and not settled', async () => {
  const printed = vi.spyOn(console, 'error').mockImplementation(() => undefined);
  const { transport, settle, extend } = cancellingQueue();
  const intervals: (() => void)[] = [];
  vi.spyOn(globalThis, 'setInterval').mockImplementation(((tick: () => void) => {
    intervals.push(tick);
  }) as never);
  let end = (): void => undefined;
  const run = vi.fn(() => new Promise<void>((resolve) => (end = resolve)));
  const worker = startRawWorker(transport, { queue: 'mail', name: 'w1' }, run);
  await expect.poll(() => run).toHaveBeenCalled();
  const [extendAll] = intervals;
  extendAll!();
  await expect.poll(() => printed).toHaveBeenCalled();
  extendAll!();
  end();
  await worker.stop();
  expect(printed.mock.calls).toEqual([['w1: The task T1 was cancelled.']]);
  expect(extend).toHaveBeenCalledTimes(1);
  expect(settle).not.toHaveBeenCalled();
});

test('worker: progress that a handler in a thread awaits is stored before its result', async () => {
  const calls: string[] = [];
  const transport = {
    claim: claimOf({ ...claimed, handler_ref: 'a', payload: '' }),
    extend: async () => {
      await new Promise((resolve) => setTimeout(resolve, 300));
      calls.push('extended');
      return { lease_expires_at: null };
    },
    settle: async () => [{ result: calls.push('settled') }],
    onStopped: () => () => undefined,
  } as unknown as QueueTransport;
  const program = `export default { a: async ({ progress }) => progress({ percent: 50 }) };`;
  const file = new URL(`data:text/javascript,${encodeURIComponent(program)}`);
  const tasks = defineTasks<{ a: unknown }>();
  const worker = startWorker(transport, { queue: 'mail', threads: 1 }, tasks, file);
  await vi.waitFor(() => expect(calls).toContain('settled'), { timeout: 60_000 });
  await worker.stop();
  expect(calls).toEqual(['extended', 'settled']);
});

test('worker: a retry function that throws is reported, and the queue decides', async () => {
  const settle = vi.fn<QueueTransport['settle']>(async () => []);
  const transport = { claim: claimOf(claimed), settle } as unknown as QueueTransport;
  const reported: unknown[] = [];
  const wrong = new Error('a bug in retry');
  const worker = startRawWorker(
    transport,
    {
      queue: 'mail',
      onError: (error) => reported.push(error),
      retry: () => {
        throw wrong;
      },
    },
    () => {
      throw new Error('no');
    },
  );
  await expect.poll(() => settle).toHaveBeenCalled();
  await worker.stop();
  expect(reported).toEqual([wrong]);
  expect(settle.mock.calls[0]![1]).toMatchObject([{ outcome: 'fail', message: 'no', retry: true }]);
});

test.each(['http://127.0.0.1:8081', undefined, {}, { url: 5 }, { urls: [] }])(
  'connectQueue: refuses %o',
  (options) => {
    expect(() => connectQueue(options as never, defineTasks())).toThrow(
      'Name the server: { url } or { urls }.',
    );
  },
);
