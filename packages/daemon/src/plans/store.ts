import type { Database } from '@millrace/engine';
import { formatTimestamp } from '@millrace/kit/units';
import { fail } from '../core/api.js';
import { deleteOldest, newestFirst } from '../storage/store.js';
import type { PlanDefinition, StoredPlan, StoredTask } from './definition.js';

/** What callers see; its changes are in the event stream. */
const visible = 'plans';
const definitions = 'plan_definitions';

/** What callers do not see. */
interface Inner {
  definition: PlanDefinition;
  taskIds: Readonly<Record<string, string>>;
}

/** Above this count, the oldest plans that have ended are deleted. */
const maxPlans = 500;

const ended: ReadonlySet<StoredTask['status']> = new Set(['done', 'failed', 'skipped', 'canceled']);

export function isTaskEnded({ status }: Pick<StoredTask, 'status'>): boolean {
  return ended.has(status);
}

/** Plans as callers see them, and their definitions. The queue has only their schedule. */
export class PlanStore {
  constructor(private readonly database: Database) {}

  /** `taskIds`: the tasks of the queue by key. */
  async insert(
    plan: StoredPlan,
    definition: PlanDefinition,
    taskIds: Readonly<Record<string, string>>,
  ): Promise<void> {
    await this.database.transact((target) => {
      target.collection<StoredPlan>(visible).put(plan.id, plan);
      target.collection<Inner>(definitions).put(plan.id, { definition, taskIds });
      deleteOldest(target, [visible, definitions], maxPlans, (status) => status !== 'running');
    });
  }

  async find(id: string): Promise<StoredPlan | undefined> {
    return (await this.database.collection<StoredPlan>(visible).findByKey(id))?.data;
  }

  /** Refuses an unknown plan. */
  async get(id: string): Promise<StoredPlan> {
    const plan = await this.find(id);
    if (plan) return plan;
    throw fail('PLAN_NOT_FOUND', `Plan "${id}" does not exist. GET /api/v1/plans lists all plans.`);
  }

  async definition(id: string): Promise<PlanDefinition> {
    return (await this.#inner(id)).definition;
  }

  async taskIds(id: string): Promise<Inner['taskIds']> {
    return (await this.#inner(id)).taskIds;
  }

  async #inner(id: string): Promise<Inner> {
    return (await this.database.collection<Inner>(definitions).findByKey(id))!.data;
  }

  /** Newest first. */
  list(): Promise<StoredPlan[]> {
    return newestFirst(this.database, visible);
  }

  /**
   * Changes one task; the result is on disk when this resolves. A task that has ended stays as it
   * is, unless `onEnded` refuses.
   */
  changeTask(
    id: string,
    key: string,
    change: (task: StoredTask) => Partial<StoredTask>,
    onEnded: (task: StoredTask) => void = () => {},
  ): Promise<StoredPlan> {
    return this.change(id, (plan) => {
      const task = taskOf(plan, key);
      if (isTaskEnded(task)) {
        onEnded(task);
        return plan;
      }
      return withTask(plan, { ...task, ...change(task) });
    });
  }

  change(id: string, change: (plan: StoredPlan) => StoredPlan): Promise<StoredPlan> {
    return this.database.transact((target) => {
      const plans = target.collection<StoredPlan>(visible);
      const before = plans.get(id);
      if (!before) throw fail('PLAN_NOT_FOUND', `Plan "${id}" does not exist.`);
      const changed = change(before);
      if (changed === before) return before;
      const after = {
        ...changed,
        status: statusOf(changed),
        updated_at: formatTimestamp(target.now),
      };
      plans.put(id, after);
      return after;
    });
  }
}

/** Refuses a key that the plan does not have. */
export function taskOf(plan: StoredPlan, key: string): StoredTask {
  const task = plan.tasks.find((each) => each.key === key);
  if (task) return task;
  const known = plan.tasks.map((each) => each.key).join(', ');
  throw fail('PLAN_NOT_FOUND', `The plan has no task "${key.slice(0, 64)}"; it has ${known}.`);
}

/** The plan with a changed task. What depends on a failed one is skipped. */
function withTask(plan: StoredPlan, task: StoredTask): StoredPlan {
  const tasks = plan.tasks.map((each) => (each.key === task.key ? task : each));
  if (task.status !== 'failed') return { ...plan, tasks };
  const missed = new Set([task.key]);
  for (let size = 0; size !== missed.size;) {
    size = missed.size;
    for (const { key, depends_on } of tasks) {
      if (depends_on.some((before) => missed.has(before))) missed.add(key);
    }
  }
  missed.delete(task.key);
  const skipped = (each: StoredTask): StoredTask =>
    missed.has(each.key) && !isTaskEnded(each)
      ? { ...each, status: 'skipped', result: `The task ${task.key} failed.` }
      : each;
  return { ...plan, tasks: tasks.map(skipped) };
}

function statusOf({ status, tasks }: StoredPlan): StoredPlan['status'] {
  if (status === 'canceled' || !tasks.every(isTaskEnded)) return status;
  return tasks.every((task) => task.status === 'done') ? 'done' : 'failed';
}
