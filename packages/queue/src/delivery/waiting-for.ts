import type { Clock } from '@millrace/kit/clock';
import type { QueueComponents } from '@millrace/contract/queue';
import type { Queue } from '../core/queue.js';
import type { Task } from '../core/task.js';
import type { TaskStore } from '../storage/task-store.js';
import type { Lane } from './lane.js';

export type WaitingFor = QueueComponents['schemas']['WaitingFor'];

export interface WaitingTools {
  store: TaskStore;
  clock: Clock;
  lane: (queue: string) => Lane;
  isHeld: (queue: Queue) => boolean;
}

/** Why a PENDING task is not running; of several reasons the first that the contract lists. */
export async function waitingFor(
  task: Task,
  queue: Queue,
  { store, clock, lane: laneOf, isHeld }: WaitingTools,
): Promise<WaitingFor> {
  if (task.dueAt !== null && task.dueAt > clock.now()) return 'time';
  if (queue.paused || isHeld(queue)) return 'paused';
  const { limits, ordering } = queue.config;
  const { inFlight } = await store.counts(queue.name);
  if (inFlight >= limits.max_in_flight) return 'concurrency';
  const lane = laneOf(queue.name);
  if (limits.dispatch_per_second > 0 && lane.isRateLimited) return 'rate_limit';
  if (lane.allowance() <= 0) return 'circuit_open';
  if (ordering.mode === 'group' && task.groupKey !== null) {
    const ask = { queue: queue.name, groupKey: task.groupKey, id: task.id };
    if (await store.groupIsBusy(ask)) return 'group';
  }
  return 'dispatch';
}
