import type { Clock } from '@millrace/kit/clock';
import type { QueueComponents } from '@millrace/contract/queue';
import type { Queue } from '../core/queue.js';
import { flowWaitOf } from '../core/flow.js';
import type { Task } from '../core/task.js';
import type { TaskStore } from '../storage/port/task-store.js';
import type { QueueState } from './queue-state.js';

export type WaitingFor = QueueComponents['schemas']['WaitingFor'];

export interface WaitingForOptions {
  store: TaskStore;
  clock: Clock;
  state: QueueState;
  isHeld: boolean;
  /** Whether no worker claims the task that is due since this time. */
  hasNoWorker: (dueAt: number | null) => Promise<boolean>;
}

/** Why a PENDING task is not running; of several reasons the first in the contract's order. */
export async function waitingFor(
  task: Task,
  queue: Queue,
  options: WaitingForOptions,
): Promise<WaitingFor> {
  return (await waitingForAll([task], queue, options)).get(task.id) ?? 'dispatch';
}

/** The same for all PENDING tasks among those of one queue, by id. */
export async function waitingForAll(
  tasks: readonly Task[],
  queue: Queue,
  { store, clock, state, isHeld, hasNoWorker }: WaitingForOptions,
): Promise<Map<string, WaitingFor>> {
  const reasons = new Map<string, WaitingFor>();
  const now = clock.now();
  const due: Task[] = [];
  for (const task of tasks) {
    if (task.status !== 'PENDING') continue;
    const wait = flowWaitOf(task);
    if (wait) reasons.set(task.id, wait);
    else if (task.dueAt !== null && task.dueAt > now) reasons.set(task.id, 'time');
    else due.push(task);
  }
  if (due.length === 0) return reasons;
  const reason = await reasonOfQueue(queue, { store, state, isHeld });
  const isFifo = queue.config.ordering.mode === 'group';
  const maxPerGroup = isFifo ? undefined : queue.config.limits.max_in_flight_per_group || undefined;
  const oldest = Math.min(...due.map(({ dueAt }) => dueAt ?? now));
  const turn = reason === undefined && (await hasNoWorker(oldest)) ? 'no_worker' : 'dispatch';
  await Promise.all(
    due.map(async ({ id, groupKey, handlerRef, dueAt }) => {
      if (reason !== undefined) return reasons.set(id, reason);
      if (state.isBlocked(handlerRef)) return reasons.set(id, 'circuit_open');
      if ((isFifo || maxPerGroup) && groupKey !== null) {
        const query = { queue: queue.name, groupKey, id, maxPerGroup };
        if (await store.groupIsBusy(query)) return reasons.set(id, 'group');
      }
      const isNew = turn === 'no_worker' && !(await hasNoWorker(dueAt));
      return reasons.set(id, isNew ? 'dispatch' : turn);
    }),
  );
  return reasons;
}

/** Why no task of the queue that is due starts; undefined if they may. */
async function reasonOfQueue(
  queue: Queue,
  { store, state, isHeld }: Pick<WaitingForOptions, 'store' | 'state' | 'isHeld'>,
): Promise<WaitingFor | undefined> {
  if (queue.paused || isHeld) return 'paused';
  const { limits } = queue.config;
  const { inFlight } = await store.counts(queue.name);
  if (inFlight >= limits.max_in_flight) return 'concurrency';
  if (limits.dispatch_per_second > 0 && state.isRateLimited) return 'rate_limit';
  return undefined;
}
