import type { NewTask, Settlement, SettleResult, TaskStore } from '../storage/task-store.js';
import type { History } from './history.js';

/** Due times of delayed tasks that are remembered for their waiting time. */
const maxDelayed = 10_000;

/** The store, with everything counted that changes the status of a task. */
export function countedStore(store: TaskStore, history: History): TaskStore {
  const delayed = new Map<string, number>();
  const submitted = ({ id, queue, dueAt }: NewTask, now: number) => {
    history.count(queue, 'submitted');
    if (dueAt <= now) return;
    if (delayed.size >= maxDelayed) delayed.delete(delayed.keys().next().value!);
    delayed.set(id, dueAt);
  };
  const own: Pick<TaskStore, 'insertTasks' | 'settle' | 'expireTasks' | 'writeRecord'> = {
    insertTasks: async (tasks, now) => {
      const results = await store.insertTasks(tasks, now);
      results.forEach(({ kind }, i) => kind === 'stored' && submitted(tasks[i]!, now));
      return results;
    },
    writeRecord: async (write) => {
      const result = await store.writeRecord(write);
      const inserted = result.kind === 'written' ? result.inserted : [];
      inserted.forEach(
        ({ kind }, i) => kind === 'stored' && submitted(write.tasks![i]!, write.now),
      );
      return result;
    },
    settle: async (settlements) => {
      const results = await store.settle(settlements);
      results.forEach((result, i) => countSettled(history, settlements[i]!, result, delayed));
      return results;
    },
    expireTasks: async (request) => {
      const tasks = await store.expireTasks(request);
      for (const { queue } of tasks) history.count(queue, 'dead');
      return tasks;
    },
  };
  const methods = new Map<PropertyKey, unknown>(Object.entries(own));
  return new Proxy(store, {
    get: (target, name) => {
      if (methods.has(name)) return methods.get(name);
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      const bound: unknown = value.bind(target);
      methods.set(name, bound);
      return bound;
    },
  });
}

function countSettled(
  history: History,
  { attempt, verdict }: Settlement,
  result: SettleResult,
  delayed: Map<string, number>,
): void {
  if (result.kind !== 'settled' || verdict.kind === 'handed_back') return;
  const { id, queue, createdAt } = result.task;
  history.ran(queue, attempt.durationMs);
  if (attempt.attempt === 1 && attempt.redrive === 0) {
    history.waited(queue, attempt.startedAt - (delayed.get(id) ?? createdAt));
    delayed.delete(id);
  }
  if (verdict.kind === 'succeeded') return history.count(queue, 'succeeded');
  history.count(queue, 'failed');
  if (verdict.kind === 'dead') history.count(queue, 'dead');
}
