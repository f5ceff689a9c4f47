import { isClaimed } from '../../core/outcome.js';
import { mayStart, withStarts } from '../../core/pacing.js';
import type { Task, WholeTask } from '../../core/task.js';
import {
  hasLabels,
  cancelledError,
  cancelRow,
  extendedExpiry,
  isClaimable,
  mayEnd,
  mayUpdate,
  newRow,
  settleRow,
  toTask,
  updateRow,
} from '../port/store-parts.js';
import type {
  CancelPendingChange,
  CancelTaskChange,
  TaskChangeResult,
  UpdateTaskChange,
} from '../port/task-changes.js';
import {
  type ClaimRequest,
  type InsertResult,
  type NewTask,
  type Settlement,
  type SettleResult,
  type TaskStore,
  tombstoneMs,
} from '../port/task-store.js';
import { settledEvents } from '../port/events.js';
import { holderOf, holdKey, type KeyHolder } from './indexes.js';
import {
  after,
  groupBytes,
  groupTimeKey,
  idKey,
  idOf,
  isGrouped,
  kinds,
  queueKey,
  readyGroup,
  readyPriority,
  timeKey,
  timeOf,
} from './keys.js';
import { knownReady, pickReady } from './queue-state.js';
import type { Step, StepQueue } from './step.js';
import {
  encodeFixed,
  encodeFixedAgain,
  isTombstone,
  maxInlineBytes,
  type StoredTask,
} from './task-codec.js';

export function insertTask(step: Step, task: NewTask, now: number): InsertResult {
  const queue = step.queue(task.queue);
  if (!queue) return { kind: 'queue_not_found' };
  const found = step.find(task.id);
  if (found && !isTombstone(found)) return { kind: 'existing', task: toTask(found.row) };
  if (found && found.purgedAt > now - tombstoneMs) return { kind: 'purged', tombstone: found };
  if (task.uniqueKey) {
    const holder = holderOf(step.rows, queue.stored.number, task.uniqueKey, now);
    const held = holder && task.isDebounced ? debounced(step, holder, task, now) : undefined;
    if (held) return held;
    if (holder && !task.isDebounced) return heldBy(step, holder, task.queue, now);
  }
  if (task.maxPending > 0 && queue.counters.pending >= task.maxPending) {
    return { kind: 'queue_full' };
  }
  if (found) step.rows.remove(timeKey(kinds.tombstone, found.purgedAt, found.id));
  const isApart = task.payload.length > maxInlineBytes;
  const stored: StoredTask = {
    row: newRow(task, now),
    queueNumber: queue.stored.number,
    attemptsApart: 0,
    lastAttempt: null,
    leaseList: '',
    hasResult: false,
    payload: isApart ? undefined : task.payload,
    fixed: encodeFixed(task, queue.stored.number, now),
  };
  if (isApart) step.rows.put(idKey(kinds.payload, task.id), Buffer.from(task.payload));
  step.enter(stored, now);
  step.store(stored);
  step.list(stored);
  holdKey(step.rows, queue.stored.number, stored.row);
  step.note('submitted', stored, now);
  return { kind: 'stored', task: toTask(stored.row) };
}

/** The pending holder of the key with the new payload; undefined if it has started. */
function debounced(
  step: Step,
  holder: KeyHolder,
  { payload: bytes, payloadContentType: contentType, dueAt }: NewTask,
  now: number,
): InsertResult | undefined {
  const task = step.task(holder.id);
  if (task?.row.status !== 'PENDING') return undefined;
  changeWaiting(step, task, { dueAt, payload: { bytes, contentType }, now });
  return { kind: 'existing', task: toTask(task.row) };
}

/** The result of a submit whose key is held: the task, or what is left of it. */
function heldBy(step: Step, holder: KeyHolder, queue: string, now: number): InsertResult {
  const found = step.find(holder.id);
  if (found && !isTombstone(found)) return { kind: 'existing', task: toTask(found.row) };
  if (found) return { kind: 'purged', tombstone: found };
  const { id, handlerRef, status } = holder;
  const tombstone = { id, queue, handlerRef, status: status ?? 'SUCCEEDED', purgedAt: now };
  return { kind: 'purged', tombstone };
}

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
  counters.scheduled! -= due.length;
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
  { now, handlers, excludedHandlers, labels, maxPerGroup = 0 }: ClaimRequest,
): StoredTask[] {
  const tasks: StoredTask[] = [];
  const picked = new Map<string, number>();
  const isFull = (groupKey: string) =>
    step.group(queue, groupBytes(groupKey)).inFlight + (picked.get(groupKey) ?? 0) >= maxPerGroup;
  const { number } = queue.stored;
  const few = (queue.ready ??= knownReady(step.rows, number, queue.counters));
  pickReady(step.rows, number, queue.counters, { limit, few }, (key) => {
    const task = step.task(idOf(key));
    if (task?.row.status !== 'PENDING') throw new Error(`The task ${idOf(key)} is not ready`);
    const { dueAt, expiresAt, handlerRef, groupKey } = task.row;
    const isLimited = maxPerGroup > 0 && groupKey !== null;
    if (isLimited && isFull(groupKey)) return 'group';
    // Expired, or made ready before the clock was set back.
    if ((expiresAt !== null && expiresAt <= now) || dueAt! > now) return false;
    if (handlers && !handlers.includes(handlerRef)) return false;
    if (excludedHandlers?.includes(handlerRef) || !hasLabels(task.row, labels)) return false;
    if (isLimited) picked.set(groupKey, (picked.get(groupKey) ?? 0) + 1);
    tasks.push(task);
    return true;
  });
  return tasks;
}

export function settle(step: Step, settlement: Settlement): SettleResult {
  const task = step.task(settlement.id);
  if (!task) return { kind: 'lease_lost', task: undefined };
  const { row } = task;
  if (row.lease?.token !== settlement.token) {
    const { settled } = row;
    if (settled?.token !== settlement.token) return { kind: 'lease_lost', task: toTask(row) };
    return { kind: 'repeated', task: toTask(row), verdict: settled.verdict };
  }
  if (!mayEnd(row.lease, settlement)) return { kind: 'lease_lost', task: toTask(row) };
  step.removeLease(task);
  settleRow(row, settlement);
  // A suspension is no attempt, and many of them would push the attempts out of the history.
  if (settlement.verdict.kind !== 'suspended') step.addAttempt(task, settlement.attempt);
  if (settlement.result !== undefined && row.status === 'SUCCEEDED') {
    step.rows.put(idKey(kinds.result, row.id), Buffer.from(settlement.result));
    task.hasResult = true;
  }
  if (row.status === 'PENDING') step.enter(task, settlement.now);
  else if (row.status === 'SUCCEEDED') step.succeeded(task);
  else step.died(task);
  step.store(task);
  for (const [type, detail] of settledEvents(settlement, row.dueAt)) {
    step.note(type, task, settlement.now, detail);
  }
  return { kind: 'settled', task: toTask(row) };
}

export function extendLease(
  step: Step,
  change: Parameters<TaskStore['extendLease']>[0],
): Task | 'lease_lost' | 'not_found' {
  const task = step.task(change.id);
  if (!task) return 'not_found';
  const { row } = task;
  const { lease } = row;
  if (lease?.token !== change.token) return 'lease_lost';
  step.moveLease(task, extendedExpiry(lease, change));
  lease.isAsync = change.isAsync;
  row.updatedAt = change.now;
  row.progress = change.progress ?? row.progress;
  step.store(task);
  if (change.progress) step.note('progress', task, change.now, { progress: change.progress });
  return toTask(row);
}

export function cancelTask(step: Step, change: CancelTaskChange): TaskChangeResult {
  const task = step.task(change.id);
  if (!task) return { kind: 'not_found' };
  const { row } = task;
  const isRepeated = row.deadReason === 'CANCELLED';
  if (row.status === 'PENDING') cancelWaiting(step, task, change);
  else if (row.status === 'IN_FLIGHT') cancelRunning(step, task, change);
  else if (!isRepeated) return { kind: 'refused', task: toTask(row) };
  record(step, 'cancel', row.queue, change, isRepeated ? 0 : 1);
  return { kind: isRepeated ? 'repeated' : 'changed', task: toTask(row) };
}

export function cancelPending(step: Step, change: CancelPendingChange): string[] {
  const cancelled: string[] = [];
  for (const id of change.ids) {
    const task = step.task(id);
    if (task?.row.queue !== change.queue || task.row.status !== 'PENDING') continue;
    cancelWaiting(step, task, change);
    cancelled.push(id);
  }
  record(step, 'cancel', change.queue, change, cancelled.length);
  return cancelled;
}

export function updateTask(step: Step, change: UpdateTaskChange): TaskChangeResult {
  const task = step.task(change.id);
  if (!task) return { kind: 'not_found' };
  const { row } = task;
  if (!mayUpdate(row, change)) return { kind: 'refused', task: toTask(row) };
  changeWaiting(step, task, change);
  record(step, change.action, row.queue, change, 1);
  return { kind: 'changed', task: toTask(row) };
}

function changeWaiting(
  step: Step,
  task: StoredTask,
  change: Pick<UpdateTaskChange, 'dueAt' | 'priority' | 'payload' | 'now'>,
): void {
  const { row } = task;
  const { payload } = change;
  step.leave(task, { isReady: false });
  updateRow(row, change);
  if (payload) {
    const isApart = payload.bytes.length > maxInlineBytes;
    const key = idKey(kinds.payload, row.id);
    if (isApart) step.rows.put(key, Buffer.from(payload.bytes));
    else if (task.payload === undefined) step.rows.remove(key);
    task.payload = isApart ? undefined : payload.bytes;
  }
  task.fixed = encodeFixedAgain(task);
  step.enter(task, change.now);
  step.store(task);
}

function cancelWaiting(
  step: Step,
  task: StoredTask,
  { now, message }: { now: number; message: string },
): void {
  step.leave(task, { isReady: false });
  cancelRow(task.row, message, now);
  step.died(task);
  step.store(task);
  step.note('cancelled', task, now, { error: task.row.lastError });
}

function cancelRunning(step: Step, task: StoredTask, change: CancelTaskChange): void {
  const { row } = task;
  const { now, message } = change;
  if (!isClaimed(row)) throw new Error(`The task ${row.id} is in flight without a lease`);
  const attempt = change.attempt(row, now);
  const { token } = row.lease;
  step.removeLease(task);
  const verdict = { kind: 'dead', reason: 'CANCELLED' } as const;
  const error = cancelledError(message, now);
  settleRow(row, { id: row.id, token, now, verdict, attempt, error });
  step.addAttempt(task, attempt);
  step.died(task);
  step.store(task);
  step.note('cancelled', task, now, { error });
}

function record(
  step: Step,
  action: 'cancel' | 'run_now' | 'update',
  queue: string,
  { now, by, selector }: Pick<CancelTaskChange, 'now' | 'by' | 'selector'>,
  count: number,
): void {
  step.record({ at: now, principal: by, action, queue, selector, count });
}

const maxPerStep = 2_000;

/**
 * Moves rows of a queue from plain to FIFO order or back, some in each step, after its `ordering`
 * changed. True: the queue is in the requested order and can be claimed from.
 */
export function reorder(step: Step, name: string, fifo: boolean): boolean {
  const queue = step.queue(name);
  if (!queue) return true;
  const { counters } = queue;
  // Its rows are moved one by one.
  queue.ready = undefined;
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

export function handlersByQueue(tasks: readonly NewTask[]): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const { queue, handlerRef } of tasks) {
    found.set(queue, (found.get(queue) ?? new Set<string>()).add(handlerRef));
  }
  return found;
}
