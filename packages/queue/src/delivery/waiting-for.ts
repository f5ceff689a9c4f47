import type { Clock } from '@millrace/kit/clock';
import type { QueueComponents } from '@millrace/contract/queue';
import type { Queue } from '../core/queue.js';
import type { Task } from '../core/task.js';
import type { TaskStore } from '../storage/task-store.js';
import type { QueueState } from './queue-state.js';

export type WaitingFor = QueueComponents['schemas']['WaitingFor'];

export interface WaitingForOptions {
  store: TaskStore;
  clock: Clock;
  state: QueueState;
  isHeld: boolean;
}

/** Why a PENDING task is not running; of several reasons the first in the contract's order. */
export async function waitingFor(
  task: Task,
  queue: Queue,
  { store, clock, state, isHeld }: WaitingForOptions,
): Promise<WaitingFor> {
  if (task.dueAt !== null && task.dueAt > clock.now()) return 'time';
  if (queue.paused || isHeld) return 'paused';
  const { limits, ordering } = queue.config;
  const { inFlight } = await store.counts(queue.name);
  if (inFlight >= limits.max_in_flight) return 'concurrency';
  if (limits.dispatch_per_second > 0 && state.isRateLimited) return 'rate_limit';
  if (state.allowance() <= 0) return 'circuit_open';
  if (ordering.mode === 'group' && task.groupKey !== null) {
    const query = { queue: queue.name, groupKey: task.groupKey, id: task.id };
    if (await store.groupIsBusy(query)) return 'group';
  }
  return 'dispatch';
}
