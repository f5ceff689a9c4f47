import { PermanentError } from './errors.js';
import { decodePayload } from './payload.js';
import type { Step } from './steps.js';
import { readPayload, type TaskInfo, type Tasks, type TaskTypes } from './tasks.js';

export interface Progress {
  /** 0 to 100; null: unknown. */
  percent?: number | null;
  message?: string;
}

/** A task that the handler's task depends on. */
export interface TaskDependency {
  readonly id: string;
  readonly key?: string;
  readonly handlerRef?: string;
  readonly status: 'PENDING' | 'IN_FLIGHT' | 'SUCCEEDED' | 'DEAD';
  readonly result: unknown;
  readonly resultOmitted?: boolean;
}

export interface HandlerCall<Payload, Types extends TaskTypes = TaskTypes> {
  readonly payload: Payload;
  readonly task: TaskInfo;
  /**
   * Aborted when the task is cancelled (the reason is a TaskCancelled), its lease is lost (a
   * LeaseLost), its time is over or the worker stops.
   */
  readonly signal: AbortSignal;
  /**
   * Reports progress, and keeps the lease. In a callback it needs the `url` of `createHandler`;
   * without it nothing is reported.
   */
  readonly progress: (progress: Progress) => Promise<void>;
  /** Tasks that this one depends on, in the order given. */
  readonly dependencies: readonly TaskDependency[];
  /** Runs parts of the handler once, and waits without holding a worker. */
  readonly step: Step<Types>;
}

type Returned<Type> = unknown extends Type ? unknown : Type | Promise<Type>;

/** One handler for each task. What it returns is the result of the task. */
export type TaskHandlers<Types extends TaskTypes> = {
  [Ref in keyof Types]: (
    call: HandlerCall<Types[Ref]['output'], Types>,
  ) => Returned<Types[Ref]['returned']>;
};

/** Handlers of several tasks at once: a result for each, in order. An `Error` fails its task. */
export type BatchHandlers<Types extends TaskTypes> = {
  [Ref in keyof Types]: (batch: {
    readonly tasks: readonly Omit<HandlerCall<Types[Ref]['output'], Types>, 'step'>[];
  }) => Returned<readonly (Types[Ref]['returned'] | Error)[]>;
};

/** Handlers without the types of their tasks. */
export type AnyHandlers = Readonly<Record<string, (call: never) => unknown>>;

export interface RunRequest extends Omit<HandlerCall<unknown>, 'payload'> {
  readonly bytes: Uint8Array;
  readonly contentType: string;
}

/** What a handler gets. `signal` and `step` are read on demand, which may create them. */
class Call implements HandlerCall<unknown> {
  readonly task: TaskInfo;
  readonly progress: HandlerCall<unknown>['progress'];
  readonly dependencies: readonly TaskDependency[];
  readonly #request: RunRequest;

  constructor(
    readonly payload: unknown,
    request: RunRequest,
  ) {
    this.#request = request;
    this.task = request.task;
    this.progress = request.progress;
    this.dependencies = request.dependencies;
  }

  get signal(): AbortSignal {
    return this.#request.signal;
  }

  get step(): Step<TaskTypes> {
    return this.#request.step;
  }
}

/** Checks the payload and builds what the handler gets. */
export async function handlerCall(
  tasks: Tasks<TaskTypes>,
  request: RunRequest,
): Promise<HandlerCall<unknown>> {
  const { bytes, contentType, task } = request;
  const payload = await readPayload(tasks, task.handlerRef, decodePayload(bytes, contentType));
  return new Call(payload, request);
}

export function handlerOf(handlers: AnyHandlers, ref: string): (call: never) => unknown {
  const handler = Object.hasOwn(handlers, ref) ? handlers[ref] : undefined;
  if (!handler) throw new PermanentError(`There is no handler for ${ref}`);
  return handler;
}

/** Checks the payload and calls the handler of the task. */
export async function runHandler(
  tasks: Tasks<TaskTypes>,
  handlers: AnyHandlers,
  request: RunRequest,
): Promise<unknown> {
  const handler = handlerOf(handlers, request.task.handlerRef);
  return handler((await handlerCall(tasks, request)) as never);
}
