import type { QueuePut, QueuePutResult } from '../port/task-store.js';
import { kinds, nameKey, queueKey } from './keys.js';
import { encodeJson, toQueue, type StoredQueue } from './queue-rows.js';
import { removeRowsOf } from './rows.js';
import type { Step } from './step.js';

export function putQueue(step: Step, put: QueuePut, incarnation: string): QueuePutResult {
  const { queue: name, config, ifVersion, now, by } = put;
  const before = step.queue(name)?.stored;
  if (ifVersion !== undefined && ifVersion !== (before?.version ?? 0)) {
    return { kind: 'version_mismatch', queue: before && toQueue(before) };
  }
  const queue: StoredQueue = {
    name,
    config,
    paused: before?.paused ?? false,
    version: (before?.version ?? 0) + 1,
    incarnation: before?.incarnation ?? incarnation,
    createdAt: before?.createdAt ?? now,
    updatedAt: now,
    number: before?.number ?? newNumber(step),
  };
  step.rows.put(nameKey(kinds.queue, name), encodeJson(queue));
  step.record(act('config_write', put.queue, now, by));
  return { kind: 'written', queue: toQueue(queue), created: !before };
}

export interface QueueAct {
  queue: string;
  now: number;
  by: string;
}

export function setPaused(step: Step, change: QueueAct & { paused: boolean }): boolean {
  const queue = step.queue(change.queue);
  if (!queue) return false;
  if (queue.stored.paused !== change.paused) {
    queue.stored = { ...queue.stored, paused: change.paused };
    step.rows.put(nameKey(kinds.queue, change.queue), encodeJson(queue.stored));
  }
  step.record(act(change.paused ? 'pause' : 'resume', change.queue, change.now, change.by));
  return true;
}

/** Returns the number of the deleted queue, whose tasks are still to be deleted. */
export function deleteQueue(step: Step, change: QueueAct): number | 'not_empty' | 'not_found' {
  const queue = step.queue(change.queue);
  if (!queue) return 'not_found';
  const { pending, inFlight, dead } = queue.counters;
  if (pending + inFlight + dead > 0) return 'not_empty';
  const { number } = queue.stored;
  step.rows.remove(nameKey(kinds.queue, change.queue));
  step.rows.remove(queueKey(kinds.counters, number));
  removeRowsOf(step, number);
  step.rows.put(queueKey(kinds.deletedQueue, number), Buffer.from(String(change.now)));
  step.drop(change.queue);
  step.record(act('delete', change.queue, change.now, change.by));
  return number;
}

function act(
  action: 'config_write' | 'pause' | 'resume' | 'delete',
  queue: string,
  at: number,
  principal: string,
) {
  return { at, principal, action, queue, selector: null, count: null };
}

function newNumber(step: Step): number {
  const key = nameKey(kinds.meta, 'queues');
  const number = Number(step.rows.get(key)?.toString() ?? 0) + 1;
  step.rows.put(key, Buffer.from(String(number)));
  return number;
}
