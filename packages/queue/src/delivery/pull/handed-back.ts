import { attemptRecord, type LeasedTask } from '../../core/attempt-record.js';
import type { Settlement } from '../../storage/port/task-store.js';

/** Settles a claim whose worker did not get the task. It does not count as an attempt. */
export function handedBack(task: LeasedTask, now: number): Settlement {
  const message = 'The worker disconnected before it received the task';
  return {
    id: task.id,
    token: task.lease.token,
    now,
    verdict: { kind: 'handed_back', dueAt: now },
    attempt: attemptRecord(task, { outcome: 'INTERRUPTED', now, message, traceId: null }),
  };
}
