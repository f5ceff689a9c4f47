import type { WholeTask } from '../../core/task.js';
import { mayStart, withStarts } from '../../core/start-window.js';
import { claimRow } from '../task-row.js';
import type { ClaimAsk } from '../task-store.js';
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
import { pickReady } from './ready-lanes.js';
import type { Step, StepQueue } from './step.js';
import type { StoredTask } from './task-codec.js';
import { showWhole } from './whole-tasks.js';

/**
 * So many scheduled tasks that have fallen due are made ready with one claim, the earliest first.
 * When more fall due in one moment, the others follow with the next claims.
 */
const mostMadeReady = 4_096;
const mostConverted = 2_000;

/** Undefined: the queue's rows must be brought to another order before. */
export function claimDue(step: Step, ask: ClaimAsk): WholeTask[] | undefined {
  const queue = step.queue(ask.queue);
  if (!queue || queue.stored.paused) return [];
  if (queue.counters.fifo !== ask.fifoGroups || queue.counters.converting !== null)
    return undefined;
  // What came before in this step may have changed who is first in a group.
  step.writeGroups();
  makeReady(step, queue, ask.now);
  const { counters } = queue;
  const limit = Math.min(
    ask.limit,
    ask.maxInFlight - counters.inFlight,
    mayStart(counters.starts, ask.now, ask.dispatchPerSecond),
  );
  const claimed = pick(step, queue, limit, ask.now).map((task) => claim(step, task, ask));
  if (ask.dispatchPerSecond > 0 && claimed.length > 0) {
    counters.starts = withStarts(counters.starts, ask.now, claimed.length, ask.dispatchPerSecond);
  }
  return claimed;
}

function pick(step: Step, queue: StepQueue, limit: number, now: number): StoredTask[] {
  const tasks: StoredTask[] = [];
  pickReady(step.rows, queue.stored.number, queue.counters, limit, (key) => {
    const task = step.task(idOf(key));
    if (!task) throw new Error(`A task is ready that is not there: ${idOf(key)}`);
    const { dueAt, expiresAt } = task.row;
    // About to be declared dead; or made ready before the clock was set back.
    if ((expiresAt !== null && expiresAt <= now) || dueAt! > now) return false;
    tasks.push(task);
    return true;
  });
  return tasks;
}

function claim(step: Step, task: StoredTask, ask: ClaimAsk): WholeTask {
  const { now, nodeId, leaseExpiresAt } = ask;
  step.leave(task, { isReady: true });
  claimRow(task.row, { token: ask.newToken(), now, nodeId, leaseExpiresAt });
  step.lease(task);
  step.store(task);
  return showWhole(step.rows, task);
}

/** Brings what has fallen due to where it is claimed. */
function makeReady(step: Step, queue: StepQueue, now: number): void {
  const { counters } = queue;
  if (counters.nextDue === null || counters.nextDue > now) return;
  const start = queueKey(kinds.scheduled, queue.stored.number);
  const limit = mostMadeReady + 1;
  const rows = [...step.rows.range({ start, end: after(start), limit })];
  const next = rows.findIndex(({ key }) => timeOf(key) > now);
  const due = rows.slice(0, next === -1 ? mostMadeReady : next);
  const left = rows[due.length];
  counters.nextDue = left ? timeOf(left.key) : null;
  for (const { key, value } of due) {
    step.rows.remove(key);
    step.ready(queue, value[0]!, value.subarray(1), timeOf(key), idOf(key));
  }
  step.writeGroups();
}

/**
 * Brings the rows of a queue some way to the order that the claims ask for. True: they are there,
 * and the queue may be claimed from.
 */
export function convertOrder(step: Step, name: string, fifo: boolean): boolean {
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

/** Takes ready tasks that have a group into its line. Returns where to go on, null at the end. */
function lineUp(step: Step, queue: StepQueue, from: string): string | null {
  const { number } = queue.stored;
  const start = from ? Buffer.from(from, 'hex') : queueKey(kinds.ready, number);
  const end = after(queueKey(kinds.ready, number));
  const rows = [...step.rows.range({ start, end, limit: mostConverted })];
  for (const { key } of rows) {
    const group = readyGroup(key);
    if (!isGrouped(group)) continue;
    // It was lined up after the change began, and is in front already.
    if (step.group(queue, group).head?.id === idOf(key)) continue;
    step.rows.remove(key);
    step.ready(queue, readyPriority(key), group, timeOf(key), idOf(key));
  }
  const last = rows.at(-1)?.key;
  if (!last || rows.length < mostConverted) return null;
  return Buffer.concat([last, Buffer.of(0)]).toString('hex');
}

/** Makes tasks that stand in lines ready, all of them. Returns whether to go on, null at the end. */
function setFree(step: Step, queue: StepQueue): string | null {
  const { number } = queue.stored;
  const start = queueKey(kinds.lined, number);
  const rows = [...step.rows.range({ start, end: after(start), limit: mostConverted })];
  for (const { key, value } of rows) {
    // The line's key differs from the ready one by the priority alone.
    const group = key.subarray(5, key.length - 32);
    const [due, id] = [timeOf(key), idOf(key)];
    step.group(queue, group);
    step.rows.remove(groupTimeKey(kinds.lined, number, group, due, id));
    step.ready(queue, value[0]!, group, due, id);
  }
  return rows.length < mostConverted ? null : '';
}
