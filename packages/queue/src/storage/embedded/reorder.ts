import {
  after,
  groupTimeKey,
  idOf,
  isGrouped,
  kinds,
  queueKey,
  readyGroup,
  readyPriority,
  timeOf,
} from './keys.js';
import type { Step, StepQueue } from './step.js';

const maxPerStep = 2_000;

/**
 * Moves rows of a queue from plain to FIFO order or back, some in each step, after its `ordering`
 * changed. True: the queue is in the requested order and can be claimed from.
 */
export function reorder(step: Step, name: string, fifo: boolean): boolean {
  const queue = step.queue(name);
  if (!queue) return true;
  const { counters } = queue;
  if (counters.fifo !== fifo) {
    counters.fifo = fifo;
    counters.converting = '';
  }
  if (counters.converting === null) return true;
  counters.converting = fifo ? lineUp(step, queue, counters.converting) : setFree(step, queue);
  return counters.converting === null;
}

/** Moves ready tasks with a group into the line of the group. Returns the next key, null at the end. */
function lineUp(step: Step, queue: StepQueue, from: string): string | null {
  const { number } = queue.stored;
  const start = from ? Buffer.from(from, 'hex') : queueKey(kinds.ready, number);
  const end = after(queueKey(kinds.ready, number));
  const rows = [...step.rows.range({ start, end, limit: maxPerStep })];
  for (const { key } of rows) {
    const group = readyGroup(key);
    if (!isGrouped(group)) continue;
    // It was added after the change began and is the head of its group.
    if (step.group(queue, group).head?.id === idOf(key)) continue;
    step.rows.remove(key);
    step.ready(queue, readyPriority(key), group, timeOf(key), idOf(key));
  }
  const last = rows.at(-1)?.key;
  if (!last || rows.length < maxPerStep) return null;
  return Buffer.concat([last, Buffer.of(0)]).toString('hex');
}

/** Makes all tasks in the lines of groups ready. Returns null at the end. */
function setFree(step: Step, queue: StepQueue): string | null {
  const { number } = queue.stored;
  const start = queueKey(kinds.lined, number);
  const rows = [...step.rows.range({ start, end: after(start), limit: maxPerStep })];
  for (const { key, value } of rows) {
    // The key differs from the ready key only in the priority.
    const group = key.subarray(5, key.length - 32);
    const [due, id] = [timeOf(key), idOf(key)];
    step.group(queue, group);
    step.rows.remove(groupTimeKey(kinds.lined, number, group, due, id));
    step.ready(queue, value[0]!, group, due, id);
  }
  return rows.length < maxPerStep ? null : '';
}
