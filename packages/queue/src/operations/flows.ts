import type { QueueSchema } from '@millrace/contract/queue';
import { type FieldError, Refusal } from '@millrace/kit/errors';
import type { Queue } from '../core/queue.js';
import { FlowRefused, insertFlow } from '../storage/port/flow-graph.js';
import { perform, type FlowProgram } from '../storage/port/flow-program.js';
import type { InsertResult, NewTask } from '../storage/port/task-store.js';
import { checkFlow, dependenciesOf, readNamed, refusedByOthers } from './base/dependencies.js';
import { type Principal, type QueueContext, requireGrant, requireQueue } from './base/context.js';
import { fail, failBody } from './base/refusal.js';
import { toNode } from './runs.js';
import { idConflict, newTask, submitOutcome } from './submit.js';

type FlowResult = QueueSchema<'FlowResult'>;

interface FlowTask {
  key: string;
  queue: Queue;
  task: NewTask;
}

/** Stores the tasks of a flow, all or none. */
export async function submitFlow(
  context: QueueContext,
  caller: Principal,
  body: unknown,
): Promise<{ result: FlowResult; isReplay: boolean }> {
  const { store, clock, random, observer } = context;
  const given = context.checks.flow.read(body);
  const now = clock.now();
  const flowId = given.flow_id?.toUpperCase() ?? random.ulid(now);
  for (const { queue } of given.tasks) requireGrant(caller, queue, 'submitter');
  const stored = given.flow_id === undefined ? undefined : await storedFlow(context, flowId);
  if (stored) return replayed(context, caller, stored);
  const tasks = await readTasks(context, caller, given.tasks, flowId, now);
  const traced = observer.inTrace(tasks.map(({ task }) => task));
  try {
    const results = await store.runFlow(() => storeAll(flowId, traced, now), now);
    if (!results) return replayed(context, caller, (await storedFlow(context, flowId))!);
    observer.submitted(traced, results, now);
  } catch (error) {
    if (!(error instanceof FlowRefused)) throw error;
    error.results.forEach((result, index) => {
      const { queue, task } = tasks[index]!;
      // Throws the refusal; a task that exists already is one too.
      if (result.kind !== 'stored') submitOutcome(caller, queue, task, result);
    });
    const taken = error.results.findIndex(({ kind }) => kind !== 'stored');
    throw failBody('INVALID_FLOW', [takenBy(error.results[taken]!, tasks[taken]!.task, taken)]);
  }
  const list = tasks.map(({ key, task }) => ({ key, id: task.id }));
  return { result: { flow_id: flowId, tasks: list }, isReplay: false };
}

/** A flow that was stored before, which a guessed id must not show to others. */
async function replayed(context: QueueContext, caller: Principal, result: FlowResult) {
  const tasks = await context.store.readTasks(result.tasks.map(({ id }) => id));
  const hidden = tasks.find(({ queue }) => !caller.grants.allows(queue, 'submitter'));
  if (hidden) throw idConflict(caller, result.flow_id, hidden.queue);
  return { result, isReplay: true };
}

function takenBy(result: InsertResult, { id }: NewTask, index: number): FieldError {
  if (result.kind !== 'existing' || result.task.id === id) {
    const message = 'is the id of a task that exists already';
    return { pointer: `/tasks/${index}/id`, message };
  }
  const message = `is held by the task ${result.task.id}; submit the flow when that has ended`;
  return { pointer: `/tasks/${index}/unique_key`, message };
}

/** Undefined: the flow was stored before. */
function* storeAll(flowId: string, tasks: readonly NewTask[], now: number) {
  yield* perform({ op: 'lock', key: flowId });
  const members = yield* perform({ op: 'rows', kinds: ['member'], ids: [flowId] });
  if (members.length > 0) return undefined;
  const results = yield* insertFlow(tasks, now);
  if (results.some(({ kind }) => kind !== 'stored')) throw new FlowRefused(results);
  return results;
}
storeAll satisfies (...args: never[]) => FlowProgram<unknown>;

/** The tasks of a flow, with what they depend on. */
export async function getFlow(
  context: QueueContext,
  caller: Principal,
  { flow_id: given }: { flow_id: string },
): Promise<QueueSchema<'FlowGraph'>> {
  const flowId = given.toUpperCase();
  const stored = (await storedFlow(context, flowId)) ?? { tasks: [] };
  const found = await context.store.readTasks(stored.tasks.map(({ id }) => id));
  const seen = found.filter(({ queue }) => caller.grants.allows(queue, 'submitter'));
  if (seen.length === 0) throw fail('TASK_NOT_FOUND', `No task has the flow id ${flowId}.`);
  const known = new Map(found.map((task) => [task.id, task]));
  const shown = new Set(seen.map(({ id }) => id));
  const dependencies = await dependenciesOf(context, seen);
  const nodes = stored.tasks.flatMap(({ key, id }): QueueSchema<'FlowNode'>[] => {
    const task = known.get(id);
    if (!task) return [];
    if (!shown.has(id)) return [{ key, id, hidden: true }];
    const { steps: _steps, children: _children, ...node } = toNode(task);
    return [{ key, ...node, depends_on: dependencies.get(id) ?? [] }];
  });
  return { flow_id: flowId, tasks: nodes };
}

async function storedFlow(
  { store }: QueueContext,
  flowId: string,
): Promise<FlowResult | undefined> {
  const rows = await store.readFlowRows({ kinds: ['member'], ids: [flowId] });
  if (rows.length === 0) return undefined;
  const members = rows.map(({ key: id, value }) => {
    return { id, ...(JSON.parse(value) as { key: string; index: number }) };
  });
  const inOrder = members.toSorted((a, b) => a.index - b.index);
  return { flow_id: flowId, tasks: inOrder.map(({ key, id }) => ({ key, id })) };
}

/** Checks every task, and collects all faults before it refuses the flow. */
async function readTasks(
  context: QueueContext,
  caller: Principal,
  given: QueueSchema<'FlowRequest'>['tasks'],
  flowId: string,
  now: number,
): Promise<FlowTask[]> {
  const { random, checks } = context;
  const queues = new Map<string, Queue>();
  for (const { queue } of given) {
    if (!queues.has(queue)) queues.set(queue, await requireQueue(context, queue));
  }
  const faults: FieldError[] = [];
  const ids = idsByKey(given, () => random.ulid(now), faults);
  const own = new Set(ids.values());
  const tasks: FlowTask[] = [];
  for (const [index, { key, queue: name, ...rest }] of given.entries()) {
    const queue = queues.get(name)!;
    try {
      const id = ids.get(key)!;
      const dependsOn = dependenciesIn(rest, ids, index, faults);
      const body = { ...rest, id, ...(dependsOn && { depends_on: dependsOn }) };
      const by = caller.principal;
      const task = newTask(checks.task, body, { queue, now, by, newId: () => id });
      checkFlow(caller, task, await readNamed(context, [task], own), own);
      tasks.push({ key, queue, task: { ...task, flow: { ...task.flow, flowId, key } } });
    } catch (error) {
      if (!(error instanceof Refusal) || !error.extra.errors) throw error;
      for (const { pointer, message } of error.extra.errors) {
        const at = `/tasks/${index}${pointer}`;
        if (!faults.some((fault) => fault.pointer === at)) faults.push({ pointer: at, message });
      }
    }
  }
  if (faults.length === 0) addCycles(tasks, faults);
  if (faults.length > 0) throw failBody('INVALID_FLOW', faults);
  return tasks;
}

function idsByKey(
  given: readonly { key: string; id?: unknown }[],
  newId: () => string,
  faults: FieldError[],
): Map<string, string> {
  const ids = new Map<string, string>();
  given.forEach(({ key, id }, index) => {
    if (ids.has(key)) {
      faults.push({ pointer: `/tasks/${index}/key`, message: 'is the key of another task' });
    }
    ids.set(key, typeof id === 'string' ? id.toUpperCase() : newId());
  });
  return ids;
}

type Dependencies = QueueSchema<'SubmitTaskRequest'>['depends_on'];

/** Dependencies by id; what is neither a key nor an id is a fault. */
function dependenciesIn(
  task: Record<string, unknown>,
  ids: ReadonlyMap<string, string>,
  index: number,
  faults: FieldError[],
): Dependencies {
  const listed = task['depends_on'];
  // Anything else is refused by the schema of a task.
  if (!Array.isArray(listed)) return undefined;
  return listed.map((each: unknown, at) => {
    const { key, id, on } =
      typeof each === 'string'
        ? { key: ids.has(each) ? each : undefined, id: each, on: 'success' as const }
        : (each as { key?: string; id?: string; on?: 'success' | 'end' });
    if (key === undefined) return each as string;
    const named = ids.get(key);
    const pointer = `/tasks/${index}/depends_on/${at}`;
    if (named === undefined) faults.push({ pointer, message: 'names no task of the flow' });
    if (typeof each !== 'string' && id !== undefined) {
      faults.push({ pointer, message: 'must have a key or an id, not both' });
    }
    return { id: named ?? '', on: on ?? 'success' };
  });
}

function addCycles(tasks: readonly FlowTask[], faults: FieldError[]): void {
  const items = tasks.map(({ task: { id, flow } }) => ({
    id,
    dependsOn: flow?.dependsOn?.map((each) => each.id) ?? [],
  }));
  for (const [index, reason] of refusedByOthers(items, new Set())) {
    if (reason !== 'cycle') continue;
    const pointer = `/tasks/${index}/depends_on`;
    faults.push({ pointer, message: 'leads back to the task itself' });
  }
}
