import type { Task } from '../../core/task.js';

/** The part of the storage port for tasks that depend on tasks, wait, or record steps. */
export interface FlowStore {
  /** Runs a flow program in one commit. A program that throws changes nothing. */
  runFlow<Result>(start: () => AnyProgram<Result>, now: number): Promise<Result>;
  readFlowRows(query: FlowRowQuery): Promise<FlowRow[]>;
  /** Tasks with their results; those that are gone are left out. */
  readTasks(ids: readonly string[]): Promise<TaskWithResult[]>;
  holderOf(queue: string, uniqueKey: string, now: number): Promise<string | undefined>;
  /** Wakes tasks whose wake-up was lost in a crash. Returns how many ends it handled. */
  wake(now: number): Promise<number>;
}

/** A `FlowProgram`, whose requests the store knows. */
export type AnyProgram<Result> = Generator<unknown, Result, unknown>;

export type TaskWithResult = Task & { result: string | null };

/**
 * Small rows that belong to a task, or to a flow (`member`), and are deleted with it. The key of
 * `dependent`, `waiter`, `awaited`, `child` and `member` is the id of the other task.
 */
export const flowRowKinds = [
  'step',
  'signal',
  'dependent',
  'waiter',
  'awaited',
  'child',
  'member',
] as const;
export type FlowRowKind = (typeof flowRowKinds)[number];

export interface FlowRowKey {
  id: string;
  kind: FlowRowKind;
  key: string;
}

export interface FlowRow extends FlowRowKey {
  /** JSON text. */
  value: string;
}

export interface FlowRowQuery {
  kinds: readonly FlowRowKind[];
  ids: readonly string[];
  /** Only rows with these keys. */
  keys?: readonly string[] | undefined;
}
