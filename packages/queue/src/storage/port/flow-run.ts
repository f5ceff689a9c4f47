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
  unreadOf,
  wakeReason,
  type WokenBy,
} from '../../core/flow.js';
import type { Task, Tombstone } from '../../core/task.js';
import { isTask, Links, woken } from './flow-graph.js';
import { perform, type FlowProgram } from './flow-program.js';
import { type FlowRow } from './flow-store.js';
import type { Settlement, SettleResult, StepRecords, StepResult } from './task-store.js';

/** Records the steps of a settlement, and settles the task if they can be. */
export function* settleInFlow(settlement: Settlement): FlowProgram<SettleResult> {
  const request = stepsOf(settlement);
  const recorded = request && (yield* recordSteps(request));
  return yield* settleRecorded(settlement, recorded);
}

/** The steps that a settlement records, if any. */
export function stepsOf(settlement: Settlement): StepRecords | undefined {
  const { steps, maxSteps = 0 } = settlement;
  return steps && { ...settlement, steps, maxSteps, mayBeLate: true };
}

/** Settles a task whose steps are recorded, unless they were refused. */
export function* settleRecorded(
  settlement: Settlement,
  recorded: StepResult | undefined,
): FlowProgram<SettleResult> {
  const { id, suspension } = settlement;
  if (recorded?.kind === 'too_many' || recorded?.kind === 'too_large') {
    const task = (yield* perform({ op: 'tasks', ids: [id] })).get(id) as Task;
    const kind = recorded.kind === 'too_many' ? 'too_many_steps' : 'steps_too_large';
    return { kind, task };
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
    // One that waited for itself would never wake.
    return each !== id && found && isTask(found) && !isEnded(found.status);
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
  const rows = before.hasAwaited
    ? yield* perform({ op: 'rows', kinds: ['awaited'], ids: [id] })
    : [];
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
  const [known] = yield* perform({ op: 'rows', kinds: ['signal'], ids: [id], keys: [sent.id] });
  if (known) return { kind: 'repeated', signal: signalOf(known) };
  if (isEnded(task.status)) return { kind: 'ended' };
  const flow = task.flow ?? {};
  const { received, unread } = flow.signals ?? { received: 0, unread: {} };
  const count = Object.values(unread).reduce((sum, each) => sum + each, 0);
  if (count >= maxUnreadSignals) return { kind: 'full' };
  const signal: StoredSignal = { ...sent, number: received + 1, receivedAt: now };
  const more = { ...unread, [sent.name]: unreadOf(unread, sent.name) + 1 };
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

/** Records steps under the lease of the task: all or none. The first record of a name wins. */
export function* recordSteps(request: StepRecords): FlowProgram<StepResult> {
  const [result] = yield* recordAll([request]);
  return result!;
}

/** The same for several requests, as if one came after the other. */
export function* recordAll(requests: readonly StepRecords[]): FlowProgram<StepResult[]> {
  const ids = [...new Set(requests.map(({ id }) => id))];
  const tasks = yield* perform({ op: 'tasks', ids });
  const keys = [...new Set(requests.flatMap(({ steps }) => steps.map(({ name }) => name)))];
  const rows = yield* perform({ op: 'rows', kinds: ['step'], ids, keys });
  const known = new Map(
    rows.map(({ id, key, value }) => [id + key, JSON.parse(value) as StoredStep]),
  );
  const flows = new Map<string, TaskFlow>();
  const puts: FlowRow[] = [];
  const results: StepResult[] = [];
  for (const request of requests) {
    const { id } = request;
    const task = tasks.get(id);
    const result = newRows(request, task, flows.get(id), known);
    if ('rows' in result && result.rows.length > 0) {
      const { consumed } = result;
      const query = { kinds: ['signal'] as const, ids: [id], keys: consumed };
      const read = consumed.length > 0 ? yield* perform({ op: 'rows', ...query }) : [];
      const change = withRead(result, read);
      flows.set(id, change.flow);
      puts.push(...change.rows);
    }
    results.push('rows' in result ? { kind: 'done', steps: result.steps } : result);
  }
  if (puts.length === 0) return results;
  const changes = Array.from(flows, ([id, flow]) => ({ id, flow }));
  yield* perform({ op: 'change', changes });
  yield* perform({ op: 'write', puts, removals: [] });
  return results;
}

type NewRows = Pick<Extract<StepResult, { kind: 'done' }>, 'steps'> & {
  rows: FlowRow[];
  consumed: string[];
  flow: TaskFlow;
};

/** What a request stores, which is then known; or why it stores nothing. */
export function newRows(
  { id, token, now, steps, maxSteps, mayBeLate = false }: StepRecords,
  task: Pick<Task, 'lease' | 'flow'> | Tombstone | undefined,
  changed: TaskFlow | undefined,
  known: Map<string, StoredStep>,
): NewRows | Exclude<StepResult, { kind: 'done' }> {
  if (!task || 'purgedAt' in task) return { kind: 'not_found' };
  const isLate = !mayBeLate && (task.lease?.expiresAt ?? 0) <= now;
  if (task.lease?.token !== token || isLate) return { kind: 'lease_lost' };
  const flow = changed ?? task.flow ?? {};
  let { count, bytes } = flow.steps ?? { count: 0, bytes: 0 };
  const rows: FlowRow[] = [];
  const consumed = new Set<string>();
  const fresh = new Map<string, StoredStep>();
  const done = steps.map(({ name, result, error, startedAt, consumes }) => {
    const key = id + name;
    const before = known.get(key) ?? fresh.get(key);
    if (before) return { step: before, isRecorded: false };
    const number = ++count;
    const step: StoredStep = { name, result, error, startedAt, number, recordedAt: now };
    fresh.set(key, step);
    const value = JSON.stringify(step);
    bytes += Buffer.byteLength(value);
    rows.push({ id, kind: 'step', key: name, value });
    for (const signal of consumes) consumed.add(signal);
    return { step, isRecorded: true };
  });
  if (rows.length > 0 && count > maxSteps) return { kind: 'too_many' };
  if (rows.length > 0 && bytes > maxJournalBytes) return { kind: 'too_large' };
  for (const [key, step] of fresh) known.set(key, step);
  return {
    steps: done,
    rows,
    consumed: [...consumed],
    flow: { ...flow, steps: { count, bytes }, suspensions: 0 },
  };
}

/** The rows of new steps and of the signals that are read with them, and the task's flow. */
export function withRead(
  { rows, flow }: Pick<NewRows, 'rows' | 'flow'>,
  consumed: readonly FlowRow[],
): { rows: FlowRow[]; flow: TaskFlow } {
  const read = consumed.flatMap((row) => {
    const { payload: _payload, ...signal } = signalOf(row);
    if (signal.isConsumed) return [];
    return [{ ...row, value: JSON.stringify({ ...signal, isConsumed: true }) }];
  });
  if (!flow.signals || read.length === 0) return { rows: [...rows, ...read], flow };
  const signals = withoutRead(flow.signals, read.map(signalOf));
  return { rows: [...rows, ...read], flow: { ...flow, signals } };
}

function withoutRead(
  { received, unread }: NonNullable<TaskFlow['signals']>,
  read: readonly StoredSignal[],
): TaskFlow['signals'] {
  const left = { ...unread };
  for (const { name } of read) {
    if (unreadOf(left, name) > 1) left[name]!--;
    else delete left[name];
  }
  return { received, unread: left };
}

export function signalOf({ value }: FlowRow): StoredSignal {
  return JSON.parse(value) as StoredSignal;
}
