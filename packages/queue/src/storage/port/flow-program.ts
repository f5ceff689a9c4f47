import type { TaskFlow } from '../../core/flow.js';
import type { LastError, Task, Tombstone } from '../../core/task.js';
import type { AnyProgram, FlowRow, FlowRowKey, FlowRowQuery } from './flow-store.js';
import type { InsertResult, NewTask, Settlement, SettleResult } from './task-store.js';

/** A change of a stored task. At most one of `dueAt`, `dead` and `redriveAt`. */
export interface FlowChange {
  id: string;
  flow: TaskFlow;
  /** Of a PENDING task. */
  dueAt?: number | undefined;
  /** A PENDING task dies. */
  dead?: LastError | undefined;
  /** A DEAD task becomes PENDING. */
  redriveAt?: number | undefined;
}

export type FlowRequest =
  | { op: 'lock'; key: string }
  | { op: 'tasks'; ids: readonly string[] }
  | { op: 'insert'; tasks: readonly NewTask[] }
  | { op: 'settle'; settlement: Settlement }
  | { op: 'change'; changes: readonly FlowChange[] }
  | ({ op: 'rows' } & FlowRowQuery)
  | { op: 'write'; puts: readonly FlowRow[]; removals: readonly FlowRowKey[] };

/** What each request returns. Tasks that are read stay locked until the commit, like a `lock`. */
export interface FlowAnswers {
  lock: void;
  tasks: Map<string, Task | Tombstone>;
  insert: InsertResult[];
  settle: SettleResult;
  change: void;
  rows: FlowRow[];
  write: void;
}

/**
 * The rules of flows, written once: a program yields requests, and a store answers them, at once
 * or after a round trip.
 */
export type FlowProgram<Result> = Generator<FlowRequest, Result, unknown>;

type Maybe<Value> = Value | Promise<Value>;

/** Answers the requests of a program. */
export type FlowIo = {
  [Op in FlowRequest['op']]: (request: Extract<FlowRequest, { op: Op }>) => Maybe<FlowAnswers[Op]>;
};

export function runNow<Result>(program: AnyProgram<Result>, io: FlowIo): Result {
  let step = program.next();
  while (!step.done) step = program.next(answer(io, step.value));
  return step.value;
}

export async function runLater<Result>(program: AnyProgram<Result>, io: FlowIo): Promise<Result> {
  let step = program.next();
  while (!step.done) step = program.next(await answer(io, step.value));
  return step.value;
}

function answer(io: FlowIo, yielded: unknown): unknown {
  const request = yielded as FlowRequest;
  return (io[request.op] as (request: FlowRequest) => unknown)(request);
}

/** Yields one request; typed by its answer. */
export function* perform<Op extends FlowRequest['op']>(
  request: Extract<FlowRequest, { op: Op }>,
): Generator<FlowRequest, FlowAnswers[Op], unknown> {
  return (yield request) as FlowAnswers[Op];
}
