import type { QueueSchema } from '@millrace/contract/queue';
import type { FieldError } from '@millrace/kit/errors';
import { isUlid } from '@millrace/kit/ulid';
import type { Dependency, TaskFlow } from '../../core/flow.js';
import type { Task, TaskStatus } from '../../core/task.js';
import type { NewTask } from '../../storage/port/task-store.js';
import { type Principal, type QueueContext, requireGrant } from './context.js';
import { fail, failBody } from './refusal.js';

type Submitted = Pick<
  QueueSchema<'SubmitTaskRequest'>,
  'depends_on' | 'parent_id' | 'parent_lease_token'
>;

/** The flow fields of a submit; undefined if it has none. */
export function readFlow(
  given: Submitted,
  id: string | undefined,
  faults: FieldError[],
): Pick<NewTask, 'flow' | 'parentToken'> | undefined {
  const { depends_on: listed = [], parent_id: parentId, parent_lease_token: parentToken } = given;
  if (listed.length === 0 && parentId === undefined) return undefined;
  const dependsOn = new Map<string, Dependency>();
  listed.forEach((each, index) => {
    const pointer = `/depends_on/${index}`;
    const { id: named, on = 'success' } = typeof each === 'string' ? { id: each } : each;
    const known = named?.toUpperCase();
    if (known === undefined || !isUlid(known)) {
      faults.push({ pointer, message: 'must be the id of a task' });
    } else if (known === id) faults.push({ pointer, message: 'names the task itself' });
    else if (dependsOn.get(known)?.on !== 'success') dependsOn.set(known, { id: known, on });
  });
  const flow: TaskFlow = {
    ...(dependsOn.size > 0 && { dependsOn: [...dependsOn.values()] }),
    ...(parentId !== undefined && { parentId: parentId.toUpperCase() }),
  };
  return { flow, parentToken };
}

/** Stored tasks that others name, by id. */
type Named = ReadonlyMap<string, Pick<Task, 'queue'>>;

/** Reads the tasks that these name, except for `others`, which are stored with them. */
export async function readNamed(
  { store }: QueueContext,
  tasks: readonly NewTask[],
  others?: ReadonlySet<string>,
): Promise<Named> {
  const ids = new Set<string>();
  for (const { flow } of tasks) {
    for (const { id } of flow?.dependsOn ?? []) if (!others?.has(id)) ids.add(id);
    if (flow?.parentId !== undefined) ids.add(flow.parentId);
  }
  const found = ids.size > 0 ? await store.readTasks([...ids]) : [];
  return new Map(found.map((task) => [task.id, task]));
}

/** A child under the lease of its parent, which the store checks when it stores the child. */
export function isHeldChild({ flow, parentToken }: NewTask): boolean {
  return flow?.dependsOn === undefined && parentToken !== undefined;
}

/** Refuses a task whose dependencies or parent the caller may not use. */
export function checkFlow(
  caller: Principal,
  { flow, parentToken }: NewTask,
  named: Named,
  others?: ReadonlySet<string>,
): void {
  const { dependsOn = [], parentId } = flow ?? {};
  const faults: FieldError[] = [];
  dependsOn.forEach(({ id }, index) => {
    const task = named.get(id);
    if (others?.has(id) || (task && caller.grants.allows(task.queue, 'submitter'))) return;
    faults.push(unknownDependency(id, `/depends_on/${index}`));
  });
  const parent = parentId === undefined ? undefined : named.get(parentId);
  if (parentId !== undefined && !parent) faults.push(unknownParent(parentId));
  if (faults.length > 0) throw failBody('INVALID_TASK', faults);
  if (parent && parentToken === undefined) requireGrant(caller, parent.queue, 'operator');
}

export function unknownDependency(id: string, pointer = '/depends_on'): FieldError {
  return { pointer, message: `names the task ${id}, which does not exist here` };
}

export function unknownParent(id: string): FieldError {
  return { pointer: '/parent_id', message: `names the task ${id}, which does not exist here` };
}

export function taskEnded(id: string, status?: TaskStatus): Error {
  return fail('TASK_ENDED', `The task ${id} ${status ? `is ${status}` : 'has ended'}.`);
}

/**
 * Positions of the items on a cycle, or that depend on one that is refused. `refused`: positions
 * that are refused already.
 */
export function refusedByOthers(
  items: readonly { id: string; dependsOn: readonly string[] }[],
  refused: ReadonlySet<number>,
): Map<number, 'cycle' | 'refused'> {
  const positions = new Map(items.map(({ id }, index) => [id, index]));
  const open = items.map(({ dependsOn }) => dependsOn.flatMap((id) => positions.get(id) ?? []));
  const state = new Map<number, 'good' | 'cycle' | 'refused'>();
  for (const index of refused) state.set(index, 'refused');
  // An item is decided once all that it depends on are.
  for (let isMoving = true; isMoving;) {
    isMoving = false;
    open.forEach((needed, index) => {
      if (state.has(index) || !needed.every((each) => state.has(each))) return;
      state.set(index, needed.some((each) => state.get(each) !== 'good') ? 'refused' : 'good');
      isMoving = true;
    });
  }
  const bad = new Map<number, 'cycle' | 'refused'>();
  items.forEach((_, index) => {
    const known = state.get(index);
    if (known === undefined) bad.set(index, isOnCycle(open, index) ? 'cycle' : 'refused');
    else if (known !== 'good' && !refused.has(index)) bad.set(index, 'refused');
  });
  return bad;
}

function isOnCycle(needed: readonly (readonly number[])[], start: number): boolean {
  const seen = new Set<number>();
  const left = [...needed[start]!];
  for (let next; (next = left.pop()) !== undefined;) {
    if (next === start) return true;
    if (seen.has(next)) continue;
    seen.add(next);
    left.push(...needed[next]!);
  }
  return false;
}

/** The dependencies of tasks as lookup and list show them, by task. */
export async function dependenciesOf(
  { store }: QueueContext,
  tasks: readonly Task[],
): Promise<Map<string, QueueSchema<'Dependency'>[]>> {
  const shown = new Map<string, QueueSchema<'Dependency'>[]>();
  const waiting = tasks.filter(({ flow }) => flow?.dependsOn);
  if (waiting.length === 0) return shown;
  const open = waiting.flatMap(({ flow }) => flow!.dependsOn!.filter(({ status }) => !status));
  const ids = [...new Set(open.map(({ id }) => id))];
  const found = ids.length > 0 ? await store.readTasks(ids) : [];
  const statuses = new Map(found.map((task) => [task.id, task.status]));
  for (const { id, flow } of waiting) {
    const list = flow!.dependsOn!.map((each) => ({
      id: each.id,
      on: each.on,
      status: each.status ?? statuses.get(each.id) ?? 'PENDING',
    }));
    shown.set(id, list);
  }
  return shown;
}
