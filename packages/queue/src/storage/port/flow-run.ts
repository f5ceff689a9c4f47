import {
  isEnded,
  maxJournalBytes,
  maxSuspensions,
  maxUnreadSignals,
  never,
  type FlowWait,
  type StoredSignal,
  type StoredStep,
  type Suspension,
  type TaskFlow,
  wakeReason,
  type WokenBy,
} from '../../core/flow.js';
import type { Task, Tombstone } from '../../core/task.js';
import { isTask, Links, woken } from './flow-graph.js';
import { perform, type FlowProgram } from './flow-program.js';
import { type FlowRow } from './flow-store.js';
import type { NewStep, Settlement, SettleResult } from './task-store.js';

/** Records the steps of a settlement, and settles the task if they can be. */
export function* settleInFlow(settlement: Settlement): FlowProgram<SettleResult> {
  const { id, suspension, steps, maxSteps = 0 } = settlement;
  if (steps) {
    const recorded = yield* recordSteps({ ...settlement, steps, maxSteps, mayBeLate: true });
    if (recorded.kind === 'too_many' || recorded.kind === 'too_large') {
      const task = (yield* perform({ op: 'tasks', ids: [id] })).get(id) as Task;
      const kind = recorded.kind === 'too_many' ? 'too_many_steps' : 'steps_too_large';
      return { kind, task };
    }
  }
  if (suspension) return yield* suspendTask(settlement, suspension);
  return yield* perform({ op: 'settle', settlement });
}

/** Ends a claim; the task waits for a time, signals or other tasks. */
function* suspendTask(settlement: Settlement, suspension: Suspension): FlowProgram<SettleResult> {
  const { id, token, now } = settlement;
  const awaited = [...new Set(suspension.tasks)];
  const known = yield* perform({ op: 'tasks', ids: [id, ...awaited] });
  const task = known.get(id);
  const isHeld = task && isTask(task) && task.lease?.token === token;
  if (!isHeld) return yield* perform({ op: 'settle', settlement });
  const before = task.flow ?? {};
  const suspensions = (before.suspensions ?? 0) + 1;
  if (suspensions >= maxSuspensions) return yield* stuck(settlement);
  const open = awaited.filter((each) => {
    const found = known.get(each);
    return found && isTask(found) && !isEnded(found.status);
  });
  const { until, signals = [], mode } = suspension;
  const kind = signals.length > 0 ? 'signal' : awaited.length > 0 ? 'tasks' : 'timer';
  const wait: FlowWait = { kind, until, signals, openTasks: open.length, mode };
  const reason = reasonNow(wait, before, awaited, open, now);
  const flow: TaskFlow = {
    ...before,
    suspensions,
    waits: (before.waits ?? 0) + 1,
    hasAwaited: awaited.length > 0,
    wait: reason ? undefined : wait,
    wokenBy: reason,
    wokenAt: reason && now,
  };
  const verdict = { kind: 'suspended' as const, dueAt: reason ? now : (until ?? never), flow };
  const result = yield* perform({ op: 'settle', settlement: { ...settlement, verdict } });
  if (result.kind === 'settled') yield* linkAwaited(id, flow, awaited, open, known, before);
  return result;
}

function* stuck(settlement: Settlement): FlowProgram<SettleResult> {
  const { now, attempt } = settlement;
  const message = `The task was suspended ${maxSuspensions} times without recording a step.`;
  const verdict = { kind: 'dead', reason: 'FLOW_STUCK' } as const;
  const error = { errorType: 'FLOW_STUCK', message, httpStatus: null, at: now };
  const failed = { ...attempt, outcome: 'FAILED' as const, errorType: 'FLOW_STUCK', message };
  const ended = { ...settlement, verdict, error, attempt: failed };
  return yield* perform({ op: 'settle', settlement: ended });
}

/** Why the task need not wait at all. */
function reasonNow(
  wait: FlowWait,
  { signals }: TaskFlow,
  awaited: readonly string[],
  open: readonly string[],
  now: number,
): WokenBy | undefined {
  const done = awaited.find((each) => !open.includes(each));
  const last = done === undefined ? undefined : { kind: 'task' as const, id: done };
  if (wait.until !== undefined && wait.until <= now) return { kind: 'timer' };
  return wait.kind === 'timer' ? undefined : wakeReason(wait, signals?.unread ?? {}, last);
}

function* linkAwaited(
  id: string,
  { waits }: TaskFlow,
  awaited: readonly string[],
  open: readonly string[],
  known: Map<string, Task | Tombstone>,
  before: TaskFlow,
): FlowProgram<void> {
  const links = new Links(known);
  for (const each of open) {
    links.flag(each, { hasWaiters: true });
    links.put({ id: each, kind: 'waiter', key: id, value: String(waits) });
  }
  awaited.forEach((key, index) => {
    links.put({ id, kind: 'awaited', key, value: String(index) });
  });
  const rows = before.hasAwaited ? yield* perform({ op: 'rows', kind: 'awaited', ids: [id] }) : [];
  yield* links.write(rows.filter(({ key }) => !awaited.includes(key)));
}

export type SignalResult =
  { kind: 'stored' | 'repeated'; signal: StoredSignal } | { kind: 'not_found' | 'ended' | 'full' };

/** Stores a signal, and wakes the task if it waits for it. */
export function* sendSignal(
  id: string,
  sent: Pick<StoredSignal, 'id' | 'name' | 'payload'>,
  now: number,
): FlowProgram<SignalResult> {
  const task = (yield* perform({ op: 'tasks', ids: [id] })).get(id);
  if (!task || !isTask(task)) return { kind: 'not_found' };
  const [known] = yield* perform({ op: 'rows', kind: 'signal', ids: [id], keys: [sent.id] });
  if (known) return { kind: 'repeated', signal: signalOf(known) };
  if (isEnded(task.status)) return { kind: 'ended' };
  const flow = task.flow ?? {};
  const { received, unread } = flow.signals ?? { received: 0, unread: {} };
  const count = Object.values(unread).reduce((sum, each) => sum + each, 0);
  if (count >= maxUnreadSignals) return { kind: 'full' };
  const signal: StoredSignal = { ...sent, number: received + 1, receivedAt: now };
  const more = { ...unread, [sent.name]: (unread[sent.name] ?? 0) + 1 };
  const changed = { ...flow, signals: { received: received + 1, unread: more } };
  const isAwaited = task.status === 'PENDING' && flow.wait?.signals?.includes(sent.name);
  const last = { kind: 'signal' as const, name: sent.name };
  const reason = isAwaited ? wakeReason(flow.wait!, more, last) : undefined;
  const change = reason ? woken(id, changed, reason, now) : { id, flow: changed };
  yield* perform({ op: 'change', changes: [change] });
  const row = { id, kind: 'signal' as const, key: sent.id, value: JSON.stringify(signal) };
  yield* perform({ op: 'write', puts: [row], removals: [] });
  return { kind: 'stored', signal };
}

export interface StepRecords {
  id: string;
  token: string;
  now: number;
  steps: readonly NewStep[];
  maxSteps: number;
  /** Whoever settles the task decides whether its lease is still held. */
  mayBeLate?: boolean;
}

export type StepResult =
  | { kind: 'done'; steps: { step: StoredStep; isRecorded: boolean }[] }
  | { kind: 'lease_lost' | 'not_found' | 'too_many' | 'too_large' };

/** Records steps under the lease of the task: all or none. The first record of a name wins. */
export function* recordSteps(request: StepRecords): FlowProgram<StepResult> {
  const { id, token, now, steps, maxSteps, mayBeLate = false } = request;
  const task = (yield* perform({ op: 'tasks', ids: [id] })).get(id);
  if (!task || !isTask(task)) return { kind: 'not_found' };
  const isLate = !mayBeLate && (task.lease?.expiresAt ?? 0) <= now;
  if (task.lease?.token !== token || isLate) return { kind: 'lease_lost' };
  const keys = [...new Set(steps.map(({ name }) => name))];
  const rows = yield* perform({ op: 'rows', kind: 'step', ids: [id], keys });
  const known = new Map(rows.map((row) => [row.key, JSON.parse(row.value) as StoredStep]));
  const flow = task.flow ?? {};
  let { count, bytes } = flow.steps ?? { count: 0, bytes: 0 };
  const puts: FlowRow[] = [];
  const consumed: string[] = [];
  const done = steps.map(({ consumes, ...given }) => {
    const before = known.get(given.name);
    if (before) return { step: before, isRecorded: false };
    const step: StoredStep = { ...given, number: ++count, recordedAt: now };
    known.set(given.name, step);
    const value = JSON.stringify(step);
    bytes += Buffer.byteLength(value);
    puts.push({ id, kind: 'step', key: given.name, value });
    consumed.push(...consumes);
    return { step, isRecorded: true };
  });
  if (puts.length === 0) return { kind: 'done', steps: done };
  if (count > maxSteps) return { kind: 'too_many' };
  if (bytes > maxJournalBytes) return { kind: 'too_large' };
  const read = yield* consume(id, consumed);
  const signals = flow.signals && withoutRead(flow.signals, read.map(signalOf));
  const changed = { ...flow, steps: { count, bytes }, suspensions: 0, signals };
  yield* perform({ op: 'change', changes: [{ id, flow: changed }] });
  yield* perform({ op: 'write', puts: [...puts, ...read], removals: [] });
  return { kind: 'done', steps: done };
}

/** The rows of unread signals, as they are once they are read. */
function* consume(id: string, keys: readonly string[]): FlowProgram<FlowRow[]> {
  if (keys.length === 0) return [];
  const rows = yield* perform({ op: 'rows', kind: 'signal', ids: [id], keys: [...new Set(keys)] });
  return rows.flatMap((row) => {
    const { payload: _payload, ...signal } = signalOf(row);
    if (signal.isConsumed) return [];
    return [{ ...row, value: JSON.stringify({ ...signal, isConsumed: true }) }];
  });
}

function withoutRead(
  { received, unread }: NonNullable<TaskFlow['signals']>,
  read: readonly StoredSignal[],
): TaskFlow['signals'] {
  const left = { ...unread };
  for (const { name } of read) {
    if (left[name]! > 1) left[name]!--;
    else delete left[name];
  }
  return { received, unread: left };
}

export function signalOf({ value }: FlowRow): StoredSignal {
  return JSON.parse(value) as StoredSignal;
}
