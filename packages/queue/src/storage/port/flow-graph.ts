import {
  dependencyState,
  type Dependency,
  type EndStatus,
  isEnded,
  never,
  type TaskFlow,
  wakeReason,
} from '../../core/flow.js';
import type { LastError, Task, Tombstone } from '../../core/task.js';
import { perform, type FlowChange, type FlowProgram } from './flow-program.js';
import { type FlowRow } from './flow-store.js';
import type { InsertResult, NewTask } from './task-store.js';

type Known = Map<string, Task | Tombstone>;

/** Thrown by a program that stores all tasks or none. */
export class FlowRefused extends Error {
  override readonly name = 'FlowRefused';

  constructor(readonly results: readonly InsertResult[]) {
    super('A task of the flow was refused');
  }
}

/**
 * Stores tasks that depend on others. Tasks may depend on earlier or later ones of the list; the
 * caller has refused cycles.
 */
export function* insertFlow(tasks: readonly NewTask[], now: number): FlowProgram<InsertResult[]> {
  const ids = new Set<string>();
  for (const { id, flow } of tasks) {
    ids.add(id);
    for (const dependency of flow?.dependsOn ?? []) ids.add(dependency.id);
    if (flow?.parentId) ids.add(flow.parentId);
  }
  const known = yield* perform({ op: 'tasks', ids: [...ids] });
  const results = new Map<NewTask, InsertResult>();
  let left = [...tasks];
  while (left.length > 0) {
    const waiting = new Set(left.map(({ id }) => id));
    const isNext = ({ id, flow }: NewTask) =>
      !flow?.dependsOn?.some((each) => each.id !== id && waiting.has(each.id));
    const next = left.filter(isNext);
    const wave = next.length > 0 ? next : left;
    yield* insertWave(wave, known, results, now);
    const done = new Set(wave);
    left = left.filter((task) => !done.has(task));
  }
  return tasks.map((task) => results.get(task)!);
}

/** Tasks whose dependencies are stored. */
function* insertWave(
  wave: readonly NewTask[],
  known: Known,
  results: Map<NewTask, InsertResult>,
  now: number,
): FlowProgram<void> {
  const planned = new Map<NewTask, NewTask>();
  for (const task of wave) {
    const plan = task.flow ? planInsert(task, task.flow, known, now) : task;
    if ('kind' in plan) results.set(task, plan);
    else planned.set(task, plan);
  }
  const inserted = yield* perform({ op: 'insert', tasks: [...planned.values()] });
  const links = new Links(known);
  let at = 0;
  for (const [task, plan] of planned) {
    const result = inserted[at++]!;
    results.set(task, result);
    if (result.kind !== 'stored') continue;
    known.set(task.id, result.task);
    if (plan.flow) links.add(task.id, plan.flow, at);
  }
  yield* links.write();
  const dying = [...planned].flatMap(([task, { id, flow }]) => {
    const state = dependencyState(flow?.dependsOn ?? []);
    const isStored = results.get(task)!.kind === 'stored';
    return isStored && state.kind === 'failed' ? [dead(id, flow!, state.id, now)] : [];
  });
  if (dying.length === 0) return;
  yield* perform({ op: 'change', changes: dying });
  const after = yield* perform({ op: 'tasks', ids: dying.map(({ id }) => id) });
  for (const [task, result] of results) {
    const changed = after.get(task.id);
    if (changed && isTask(changed) && result.kind === 'stored') {
      results.set(task, { kind: 'stored', task: changed });
      known.set(task.id, changed);
    }
  }
}

/** The task as it is stored, or why it is refused. */
function planInsert(
  task: NewTask,
  flow: TaskFlow,
  known: Known,
  now: number,
): NewTask | InsertResult {
  const before = known.get(task.id);
  if (before && isTask(before)) return task;
  const parent = flow.parentId === undefined ? undefined : known.get(flow.parentId);
  if (flow.parentId !== undefined) {
    if (!parent || !isTask(parent)) return { kind: 'unknown_parent' };
    if (isEnded(parent.status)) return { kind: 'parent_ended' };
    const { parentToken } = task;
    const isHeld = parent.lease?.token === parentToken && (parent.lease?.expiresAt ?? 0) > now;
    if (parentToken !== undefined && !isHeld) return { kind: 'parent_lease_lost' };
  }
  const dependsOn: Dependency[] = [];
  for (const { id, on } of flow.dependsOn ?? []) {
    const found = known.get(id);
    if (!found || !isTask(found)) return { kind: 'unknown_dependency', id };
    dependsOn.push({ id, on, status: isEnded(found.status) ? found.status : undefined });
  }
  const base = {
    ...flow,
    ...(dependsOn.length > 0 && { dependsOn }),
    // The parent will probably wait for it.
    ...(parent && { hasWaiters: true }),
  };
  if (dependencyState(dependsOn).kind === 'met') return { ...task, flow: base };
  const wait = { kind: 'dependencies' as const };
  return { ...task, dueAt: never, flow: { ...base, dueAt: task.dueAt, wait } };
}

/** The rows and flags that connect new tasks with others. */
class Links {
  readonly #puts: FlowRow[] = [];
  readonly #changes = new Map<string, FlowChange>();

  constructor(private readonly known: Known) {}

  add(id: string, { dependsOn = [], parentId, flowId, key }: TaskFlow, index: number): void {
    for (const { id: on, on: condition, status } of dependsOn) {
      // A dead one that is redriven brings this task back.
      if (status === 'SUCCEEDED' || (status === 'DEAD' && condition === 'end')) continue;
      this.#puts.push({ id: on, kind: 'dependent', key: id, value: '' });
      this.flag(on, { hasWaiters: true });
    }
    if (parentId !== undefined) {
      this.#puts.push({ id: parentId, kind: 'child', key: id, value: '' });
      this.flag(parentId, { hasChildren: true });
    }
    if (flowId !== undefined) {
      const value = JSON.stringify({ key, index });
      this.#puts.push({ id: flowId, kind: 'member', key: id, value });
    }
  }

  put(row: FlowRow): void {
    this.#puts.push(row);
  }

  flag(id: string, flags: Pick<TaskFlow, 'hasWaiters' | 'hasChildren'>): void {
    const task = this.known.get(id) as Task;
    const flow = this.#changes.get(id)?.flow ?? task.flow ?? {};
    const isSet = (Object.keys(flags) as (keyof typeof flags)[]).every((name) => flow[name]);
    if (isSet) return;
    const changed = { ...flow, ...flags };
    this.#changes.set(id, { id, flow: changed });
    this.known.set(id, { ...task, flow: changed });
  }

  *write(removals: readonly FlowRow[] = []): FlowProgram<void> {
    const changes = [...this.#changes.values()];
    if (changes.length > 0) yield* perform({ op: 'change', changes });
    if (this.#puts.length + removals.length === 0) return;
    yield* perform({ op: 'write', puts: this.#puts, removals });
  }
}

export { Links };

/** Notifies the tasks that wait for these of their ends. */
export function* tasksEnded(ended: ReadonlyMap<string, EndStatus>, now: number): FlowProgram<void> {
  const ids = [...ended.keys()];
  const rows = yield* perform({ op: 'rows', kinds: ['dependent', 'waiter'], ids });
  if (rows.length === 0) return;
  const dependents = rows.filter(({ kind }) => kind === 'dependent');
  const waiters = rows.filter(({ kind }) => kind === 'waiter');
  const waiting = [...new Set(rows.map(({ key }) => key))];
  const tasks = yield* perform({ op: 'tasks', ids: waiting });
  const changes = new Map<string, FlowChange>();
  const flowOf = (id: string) => changes.get(id)?.flow ?? (tasks.get(id) as Task).flow ?? {};
  for (const { id, key } of dependents) {
    if (!isWaitingFor(tasks.get(key), 'dependencies')) continue;
    const flow = flowOf(key);
    const dependsOn = flow.dependsOn!.map((each) =>
      each.id === id ? { ...each, status: ended.get(id)! } : each,
    );
    changes.set(key, released(key, { ...flow, dependsOn }, now));
  }
  for (const { id, key, value } of waiters) {
    const task = tasks.get(key);
    if (!isWaitingFor(task, 'signal') && !isWaitingFor(task, 'tasks')) continue;
    const flow = flowOf(key);
    // It has woken since, or waits for something else now.
    if (!flow.wait || String(flow.waits) !== value) continue;
    const wait = { ...flow.wait, openTasks: flow.wait.openTasks! - 1 };
    const reason = wakeReason(wait, flow.signals?.unread ?? {}, { kind: 'task', id });
    changes.set(key, reason ? woken(key, flow, reason, now) : { id: key, flow: { ...flow, wait } });
  }
  if (changes.size > 0) yield* perform({ op: 'change', changes: [...changes.values()] });
  if (waiters.length > 0) yield* perform({ op: 'write', puts: [], removals: waiters });
}

/** A blocked task after a change of its dependencies. */
function released(id: string, flow: TaskFlow, now: number): FlowChange {
  const state = dependencyState(flow.dependsOn ?? []);
  if (state.kind === 'failed') return dead(id, flow, state.id, now);
  if (state.kind === 'open') return { id, flow };
  const dueAt = Math.max(flow.dueAt ?? now, now);
  return { id, flow: { ...flow, wait: undefined, dueAt: undefined, wokenAt: dueAt }, dueAt };
}

export function woken(id: string, flow: TaskFlow, wokenBy: TaskFlow['wokenBy'], now: number) {
  return { id, flow: { ...flow, wait: undefined, wokenBy, wokenAt: now }, dueAt: now };
}

function dead(id: string, flow: TaskFlow, dependency: string, now: number): FlowChange {
  const message = `The dependency ${dependency} did not succeed. Redrive it to run this task too.`;
  const error: LastError = { errorType: 'DEPENDENCY_FAILED', message, httpStatus: null, at: now };
  return { id, flow: { ...flow, wait: undefined }, dead: error };
}

export interface Redrive {
  ids: readonly string[];
  now: number;
  withDependents: boolean;
  /** Drop this step and those after it; null: all steps; absent: none. */
  fromStep?: string | null | undefined;
}

/**
 * After a redrive: blocks redriven tasks again whose dependencies are open, and brings back the
 * tasks that died of them. Returns how many.
 */
export function* tasksRedriven({
  ids,
  now,
  withDependents,
  fromStep,
}: Redrive): FlowProgram<number> {
  const revived = yield* perform({ op: 'tasks', ids });
  const inFlow = ids.filter((id) => (revived.get(id) as Task | undefined)?.flow);
  if (fromStep !== undefined) yield* dropSteps(inFlow, revived, fromStep);
  yield* forgetWaits(inFlow, revived);
  let next = withDependents ? inFlow : [];
  let count = 0;
  while (next.length > 0) {
    const rows = yield* perform({ op: 'rows', kinds: ['dependent'], ids: next });
    const keys = [...new Set(rows.map(({ key }) => key))].filter((key) => !revived.has(key));
    const tasks = yield* perform({ op: 'tasks', ids: keys });
    next = keys.filter((key) => {
      const task = tasks.get(key);
      return task && isTask(task) && task.deadReason === 'DEPENDENCY_FAILED';
    });
    count += next.length;
    const changes = next.map((id) => {
      const task = tasks.get(id) as Task;
      revived.set(id, task);
      return { id, flow: { ...task.flow, wait: undefined }, redriveAt: now };
    });
    if (changes.length > 0) yield* perform({ op: 'change', changes });
  }
  yield* blockAgain([...revived.keys()], now);
  return count;
}

/** No event has woken a task that is redriven. */
function* forgetWaits(ids: readonly string[], tasks: Known): FlowProgram<void> {
  const changes = ids.flatMap((id): FlowChange[] => {
    const { flow } = tasks.get(id) as Task;
    return flow?.waits ? [{ id, flow: { ...flow, wait: undefined, wokenBy: undefined } }] : [];
  });
  if (changes.length > 0) yield* perform({ op: 'change', changes });
}

function* blockAgain(ids: readonly string[], now: number): FlowProgram<void> {
  const tasks = yield* perform({ op: 'tasks', ids });
  const waiting = [...tasks.values()].filter(isTask).filter(({ flow }) => flow?.dependsOn);
  const wanted = new Set(waiting.flatMap(({ flow }) => flow!.dependsOn!.map(({ id }) => id)));
  if (wanted.size === 0) return;
  const known = yield* perform({ op: 'tasks', ids: [...wanted] });
  const changes = waiting.flatMap(({ id, flow, dueAt, status }): FlowChange[] => {
    if (status !== 'PENDING') return [];
    const dependsOn = flow!.dependsOn!.map((each): Dependency => {
      const found = known.get(each.id);
      // Of one that is gone the end is remembered.
      if (!found || !isTask(found)) return each;
      return { ...each, status: isEnded(found.status) ? found.status : undefined };
    });
    const blocked = { ...flow, dependsOn, dueAt: dueAt!, wait: { kind: 'dependencies' as const } };
    const state = dependencyState(dependsOn);
    if (state.kind === 'met') return [];
    if (state.kind === 'failed') return [dead(id, blocked, state.id, now)];
    return [{ id, flow: blocked, dueAt: never }];
  });
  if (changes.length > 0) yield* perform({ op: 'change', changes });
}

function* dropSteps(
  ids: readonly string[],
  tasks: Known,
  fromStep: string | null,
): FlowProgram<void> {
  for (const id of ids) {
    const { flow } = tasks.get(id) as Task;
    if (!flow?.steps) continue;
    const rows = yield* perform({ op: 'rows', kinds: ['step'], ids: [id] });
    const first = rows.find(({ key }) => key === fromStep);
    if (fromStep !== null && !first) continue;
    const from = first ? numberOf(first) : 0;
    // What the SDK noted for the step before its end, such as its tries, has its name before a ~.
    const isGone = (row: FlowRow) =>
      numberOf(row) >= from || (fromStep !== null && row.key.startsWith(`${fromStep}~`));
    const gone = rows.filter(isGone);
    const left = rows.filter((row) => !isGone(row));
    const bytes = left.reduce((sum, { value }) => sum + Buffer.byteLength(value), 0);
    const steps = { count: left.length, bytes };
    const changed = { ...flow, steps };
    tasks.set(id, { ...(tasks.get(id) as Task), flow: changed });
    yield* perform({ op: 'change', changes: [{ id, flow: changed }] });
    yield* perform({ op: 'write', puts: [], removals: gone });
  }
}

function numberOf({ value }: FlowRow): number {
  return (JSON.parse(value) as { number: number }).number;
}

export function isTask(found: Task | Tombstone): found is Task {
  return !('purgedAt' in found);
}

function isWaitingFor(task: Task | Tombstone | undefined, kind: string): boolean {
  return (
    task !== undefined &&
    isTask(task) &&
    task.status === 'PENDING' &&
    task.flow?.wait?.kind === kind
  );
}
