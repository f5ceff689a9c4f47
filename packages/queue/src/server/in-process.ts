import { openApiDocument } from '@millrace/contract/documents';
import type { QueueSchema } from '@millrace/contract/queue';
import { Refusal } from '@millrace/kit/errors';
import {
  type DocumentSchemas,
  operationsOf,
  type OperationDescription,
  parameterReader,
} from '@millrace/kit/http';
import { Grants } from '@millrace/kit/tokens';
import {
  ApiError,
  type CallOperation,
  type EventQuery,
  type QueueTransport,
} from '@millrace/worker';
import { type Principal, type QueueContext, roleLevels } from '../operations/base/context.js';
import { claimTasks } from '../operations/claim-tasks.js';
import { type EventBatch, openEvents } from '../operations/events.js';
import { problemOf } from '../operations/base/refusal.js';
import { recordSteps } from '../operations/runs.js';
import { extendTask, settleTasks } from '../operations/settle.js';
import { submitBatch, submitTask } from '../operations/submit.js';
import { queueHandlers } from './app.js';

/** The program itself. */
export const caller: Principal = {
  id: 'in-process',
  principal: 'in-process',
  grants: new Grants(roleLevels, [{ queue: '*', role: 'admin' }]),
  expiresAt: undefined,
};

/** A request of any operation, as a client gives it. */
interface Given {
  path?: Record<string, unknown>;
  query?: Record<string, unknown>;
  headers?: Record<string, string>;
  body?: unknown;
  signal?: AbortSignal;
}

type Run = (given: Given) => Promise<unknown>;

/** The operations of the API by their ids, without HTTP: parameters are checked by the contract. */
function operationCalls(context: QueueContext, schemas: DocumentSchemas) {
  const handlers = queueHandlers(
    context,
    // Nothing is shed in process.
    { idle: (run) => run(), enter: () => undefined, leave: () => undefined },
    () => caller,
  );
  const operations = new Map(operationsOf(openApiDocument('queue')).map((each) => [each.id, each]));
  const known = new Map<string, Run>();
  return async (id: string, given: Given = {}): Promise<unknown> => {
    const handle = handlers[id as keyof typeof handlers] as Handle;
    const run = known.get(id) ?? operationCall(handle, operations.get(id)!, schemas);
    known.set(id, run);
    return asClient(() => run(given));
  };
}

type Handle = (call: object) => Promise<{ body?: unknown }>;

function operationCall(
  handle: Handle,
  operation: OperationDescription,
  schemas: DocumentSchemas,
): Run {
  const reader = (place: 'path' | 'query' | 'header') =>
    parameterReader(operation, schemas, {
      place,
      fillDefaults: place === 'query',
      invalidCode: 'INVALID_QUERY',
    });
  const [path, query, header] = [reader('path'), reader('query'), reader('header')];
  return async (given) => {
    const { body, signal = neverAborted } = given;
    const response = await handle({
      operation,
      params: path?.read(given.path ?? {}) ?? {},
      query: query?.read(given.query ?? {}) ?? {},
      headers: header?.read(given.headers ?? {}) ?? {},
      body,
      principal: caller,
      signal,
    });
    return response.body;
  };
}

const neverAborted = new AbortController().signal;

/** A caller that is gone does not wait for the result. */
function untilAborted<Result>(run: Promise<Result>, signal?: AbortSignal): Promise<Result> {
  if (!signal) return run;
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason as Error);
    signal.addEventListener('abort', abort);
    if (signal.aborted) abort();
    run.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

/** A refusal becomes the error that a client of the server gets. */
export async function asClient<Result>(run: () => Promise<Result>): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    throw error instanceof Refusal ? clientError(error) : error;
  }
}

export function clientError(refusal: Refusal): ApiError {
  const body = problemOf(refusal);
  return new ApiError(body.status, body, refusal.extra.retryAfterMs);
}

export interface InProcessOptions {
  context: QueueContext;
  schemas: DocumentSchemas;
  /** Creates these queues with the defaults, unless they exist. */
  createQueues: (names: readonly string[]) => Promise<void>;
  autoCreate: boolean;
  /** Time does not pass by itself, so that nothing may wait for it. */
  isManual: boolean;
  close: () => Promise<void>;
}

/** The queue of this process as clients and workers use it. */
export function inProcess(options: InProcessOptions): QueueTransport {
  const { context, schemas, createQueues, autoCreate, isManual, close } = options;
  const operation = operationCalls(context, schemas);
  /** Queues that workers named and that may not exist yet. */
  let creating: Promise<void> | undefined;
  const ensureQueues = (names: readonly string[]) => {
    const created = Promise.all([creating, createQueues(names)]).then(() => undefined);
    creating = created;
    const done = () => {
      if (creating === created) creating = undefined;
    };
    // A name that no queue can have fails the claims of its worker.
    created.then(done, done);
  };
  const inQueue = async <Result>(queue: string, run: () => Promise<Result>): Promise<Result> => {
    if (creating) await creating.catch(() => undefined);
    try {
      return await asClient(run);
    } catch (error) {
      const isUnknown = error instanceof ApiError && error.code === 'QUEUE_NOT_FOUND';
      if (!isUnknown) throw error;
      if (!autoCreate) throw unknownQueue(queue, error);
      await asClient(() => createQueues([queue]));
      return asClient(run);
    }
  };
  return {
    submit: (queue, body) =>
      inQueue(queue, async () => {
        const { payload, ...task } = body;
        return (await submitTask(context, caller, { queue, body: task, payload })).result;
      }),
    submitBatch: (queue, tasks) =>
      inQueue(queue, () => {
        const payloads = tasks.map(({ payload }) => payload);
        const body = tasks.map(({ payload: _payload, ...task }) => task);
        return submitBatch(context, caller, { queue, body, payloads });
      }),
    claim: (queue, body, signal) =>
      inQueue(queue, async () => {
        const request = { queue, body, remoteIp: null, signal, hasBytes: true };
        for (;;) {
          const { tasks } = await claimTasks(context, caller, request);
          // The wait of a claim may be over in no time by a clock that is set.
          if (tasks.length > 0 || signal.aborted || !isManual) return tasks;
        }
      }),
    settle: (queue, items) => asClient(() => settleTasks(context, { queue, body: { items } })),
    extend: (id, leaseToken, body) =>
      asClient(() => extendTask(context, caller, { id, leaseToken, body })),
    recordSteps: async (id, body) =>
      (await asClient(() => recordSteps(context, caller, { id, body }))) as {
        steps: QueueSchema<'Step'>[];
      },
    call: (async (id: string, request?: Given) => {
      const run = () => untilAborted(operation(id, request), request?.signal);
      const queue = request?.path?.['queue'];
      return typeof queue === 'string' && id !== 'putQueueConfig' ? inQueue(queue, run) : run();
    }) as unknown as CallOperation,
    events: (query, signal) => events(context, query, signal),
    onStopped: (listener) => context.store.onCancelled((id) => listener(id, 'cancelled')),
    // The store settles together what ends in one turn.
    batchesCalls: true,
    ensureQueues,
    canWait: !isManual,
    now: () => context.clock.now(),
    close,
  };
}

async function* events(
  context: QueueContext,
  query: EventQuery,
  signal: AbortSignal,
): AsyncGenerator<EventBatch> {
  yield* await asClient(() => openEvents(context, { ...query, identify: () => caller, signal }));
}

function unknownQueue(queue: string, { status, body }: ApiError): ApiError {
  const detail =
    `There is no queue ${queue}. Name it in defineTasks, give it to createWorker or configure it; ` +
    'with autoCreate, openQueue creates queues by name.';
  return new ApiError(status, { ...(body as object), detail });
}
