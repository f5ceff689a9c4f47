import { mayStart, withStarts } from '../../core/start-window.js';
import type { WholeTask } from '../../core/task.js';
import { isClaimable } from '../port/claimable.js';
import type { ClaimRequest } from '../port/task-store.js';
import { after, idOf, kinds, queueKey, timeOf } from './keys.js';
import { pickReady } from './ready-tasks.js';
import type { Step, StepQueue } from './step.js';
import type { StoredTask } from './task-codec.js';

/** Scheduled tasks made ready by one claim, the earliest first; the next claim continues. */
const maxMadeReady = 4_096;

export interface ClaimResult {
  tasks: WholeTask[];
  /** True: `max_in_flight` kept it from taking more. */
  isLimited: boolean;
}

const none: ClaimResult = { tasks: [], isLimited: false };

/** Undefined: the rows of the queue must be converted to the other ordering first. */
export function claimDue(step: Step, request: ClaimRequest): ClaimResult | undefined {
  const queue = step.queue(request.queue);
  if (!isClaimable(queue?.stored, request) || !queue) return none;
  const { counters } = queue;
  if (counters.fifo !== request.fifoGroups || counters.converting !== null) return undefined;
  makeReady(step, queue, request.now);
  const slots = request.maxInFlight - counters.inFlight;
  const limit = Math.min(
    request.limit,
    slots,
    mayStart(counters.starts, request.now, request.dispatchPerSecond),
  );
  const claimed = pick(step, queue, limit, request).map((task) => step.claim(task, request));
  if (request.dispatchPerSecond > 0 && claimed.length > 0) {
    counters.starts = withStarts(
      counters.starts,
      request.now,
      claimed.length,
      request.dispatchPerSecond,
    );
  }
  return { tasks: claimed, isLimited: slots < request.limit };
}

/** Moves scheduled tasks that have fallen due to the ready rows. */
function makeReady(step: Step, queue: StepQueue, now: number): void {
  const { counters } = queue;
  if (counters.nextDue === null || counters.nextDue > now) return;
  const start = queueKey(kinds.scheduled, queue.stored.number);
  const limit = maxMadeReady + 1;
  const rows = [...step.rows.range({ start, end: after(start), limit })];
  const next = rows.findIndex(({ key }) => timeOf(key) > now);
  const due = rows.slice(0, next === -1 ? maxMadeReady : next);
  const left = rows[due.length];
  counters.nextDue = left ? timeOf(left.key) : null;
  for (const { key, value } of due) {
    step.rows.remove(key);
    step.ready(queue, value[0]!, value.subarray(1), timeOf(key), idOf(key));
  }
  step.writeGroups();
}

/** The ready tasks to claim, in order. */
function pick(
  step: Step,
  queue: StepQueue,
  limit: number,
  { now, handlers }: ClaimRequest,
): StoredTask[] {
  const tasks: StoredTask[] = [];
  pickReady(step.rows, queue.stored.number, queue.counters, limit, (key) => {
    const task = step.task(idOf(key));
    if (!task) throw new Error(`The ready task ${idOf(key)} does not exist`);
    const { dueAt, expiresAt, handlerRef } = task.row;
    // Expired, or made ready before the clock was set back.
    if ((expiresAt !== null && expiresAt <= now) || dueAt! > now) return false;
    if (handlers && !handlers.includes(handlerRef)) return false;
    tasks.push(task);
    return true;
  });
  return tasks;
}
