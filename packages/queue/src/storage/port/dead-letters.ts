import type { Task, WholeTask } from '../../core/task.js';
import type { DeadFilter, DeadGroup } from './task-store.js';

/** The fields of a dead task that filters use. */
export interface DeadFacts {
  deadAt: number;
  handlerRef: string;
  errorType: string | null;
  httpStatus: number | null;
}

export function deadFacts(task: Task): DeadFacts {
  const { deadAt, handlerRef, lastError } = task;
  const errorType = lastError?.errorType ?? null;
  return { deadAt: deadAt!, handlerRef, errorType, httpStatus: lastError?.httpStatus ?? null };
}

export function matchesDeadFilter(facts: DeadFacts, filter: DeadFilter): boolean {
  const { errorType, handlerRef, httpStatus, diedFrom, diedBefore } = filter;
  if (diedFrom !== undefined && facts.deadAt < diedFrom) return false;
  if (diedBefore !== undefined && facts.deadAt >= diedBefore) return false;
  if (errorType !== undefined && facts.errorType !== errorType) return false;
  if (handlerRef !== undefined && facts.handlerRef !== handlerRef) return false;
  return httpStatus === undefined || facts.httpStatus === httpStatus;
}

/** Extra bytes of field names and times in the API's JSON, per task and per attempt. */
const wireExtra = { task: 512, attempt: 192 };

/** Approximate size of a task in the JSON of a page. */
export function pageBytes(task: WholeTask): number {
  const payload = Math.ceil(task.payload.length / 3) * 4;
  const { payload: _payload, ...rest } = task;
  return (
    payload +
    Buffer.byteLength(JSON.stringify(rest)) +
    wireExtra.task +
    wireExtra.attempt * task.attempts.length
  );
}

/** Groups failures by kind; add tasks in the order of their deaths. */
export class DeadGroups {
  readonly #groups = new Map<string, DeadGroup>();

  add(id: string, { deadAt, handlerRef, errorType, httpStatus }: DeadFacts): void {
    const key = JSON.stringify([errorType, handlerRef, httpStatus]);
    const group = this.#groups.get(key);
    if (group) {
      group.count++;
      group.lastSeenAt = deadAt;
      group.sampleId = id;
      return;
    }
    const first = { errorType, handlerRef, httpStatus, count: 1 };
    this.#groups.set(key, { ...first, firstSeenAt: deadAt, lastSeenAt: deadAt, sampleId: id });
  }

  /** Largest group first, then the most recent. */
  top(limit: number): DeadGroup[] {
    const order = (a: DeadGroup, b: DeadGroup) =>
      b.count - a.count || b.lastSeenAt - a.lastSeenAt || (a.sampleId < b.sampleId ? 1 : -1);
    return [...this.#groups.values()].toSorted(order).slice(0, limit);
  }
}
