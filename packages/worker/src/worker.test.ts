import { afterEach, expect, test, vi } from 'vitest';
import type { ClaimedTask, QueueTransport } from './transport.js';
import { startRawWorker } from './worker.js';

afterEach(() => vi.restoreAllMocks());

const claimed = { id: 'T1', lease_token: 'l1' } as ClaimedTask;

/** A queue with one task, which is cancelled as soon as it runs. */
function cancellingQueue() {
  const left = [claimed];
  const settle = vi.fn<QueueTransport['settle']>(async () => []);
  const extend = vi.fn<QueueTransport['extend']>(async () => {
    throw Object.assign(new Error('The task T1 was cancelled.'), { code: 'LEASE_LOST' });
  });
  const claim: QueueTransport['claim'] = async (_queue, _request, signal) => {
    const tasks = left.splice(0);
    if (tasks.length > 0) return tasks;
    return new Promise((resolve) => signal.addEventListener('abort', () => resolve([])));
  };
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
  await vi.waitFor(() => expect(run).toHaveBeenCalled());
  const [extendAll] = intervals;
  extendAll!();
  await vi.waitFor(() => expect(printed).toHaveBeenCalled());
  extendAll!();
  end();
  await worker.stop();
  expect(printed.mock.calls).toEqual([['w1: The task T1 was cancelled.']]);
  expect(extend).toHaveBeenCalledTimes(1);
  expect(settle).not.toHaveBeenCalled();
});
