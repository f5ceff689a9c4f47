import { expect, test, vi } from 'vitest';
import { RunningTask } from './running-task.js';
import type { ClaimedTask, QueueTransport } from './transport.js';

const claimed = { id: 'T1', lease_token: 'l1' } as ClaimedTask;

function taskWith(extend: QueueTransport['extend']): RunningTask {
  return new RunningTask(claimed, { extend } as QueueTransport, 30_000);
}

test('running task: a signal that is read after the abort is aborted', () => {
  const task = taskWith(vi.fn());
  expect(task.isAborted).toBe(false);
  const reason = new Error('The worker stops');
  task.abort(reason);
  expect(task.isAborted).toBe(true);
  expect(task.signal.aborted).toBe(true);
  expect(task.signal.reason).toBe(reason);
});

test('running task: a lost lease aborts the signal that a handler has', async () => {
  const lost = Object.assign(new Error('lost'), { code: 'LEASE_LOST' });
  const task = taskWith(() => Promise.reject(lost));
  const { signal } = task;
  await expect(task.extend()).rejects.toBe(lost);
  expect(signal.aborted).toBe(true);
  expect(task.isAborted).toBe(true);
});
