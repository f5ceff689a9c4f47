import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { cancelTask } from '../../operations/cancel-task.js';
import { claimTasks } from '../../operations/claim-tasks.js';
import { completeTask } from '../../operations/complete-task.js';
import type { QueueContext } from '../../operations/context.js';
import { extendTask } from '../../operations/extend-task.js';
import { failTask } from '../../operations/fail-task.js';
import { getStats } from '../../operations/get-stats.js';
import { getTask } from '../../operations/get-task.js';
import type { Urgency } from '../../operations/limits/load.js';
import { listTasks, type ListTasksRequest } from '../../operations/list-tasks.js';
import { requireGrant, type Principal } from '../../operations/principal.js';
import { failBody } from '../../operations/refusal.js';
import { submitBatch } from '../../operations/submit-batch.js';
import { submitTask } from '../../operations/submit-task.js';
import type { QueryReaders } from './query-readers.js';

export interface CallContext {
  context: QueueContext;
  caller: Principal;
  queries: QueryReaders;
}

export interface UnaryCall {
  urgency: Urgency;
  run(call: CallContext, request: JsonObject): Promise<object>;
}

const textIn = (request: JsonObject, name: string): string => {
  const value = request[name];
  return typeof value === 'string' ? value : '';
};

/** The fields of a message that belong to the body of the REST call. */
function bodyOf(message: JsonObject, ...others: string[]): JsonObject {
  return Object.fromEntries(Object.entries(message).filter(([name]) => !others.includes(name)));
}

const newWork = (run: UnaryCall['run']): UnaryCall => ({ urgency: 'new_work', run });
const upkeep = (run: UnaryCall['run']): UnaryCall => ({ urgency: 'upkeep', run });

/** The unary methods: each calls the operation that the REST API calls. */
export const unaryCalls: Readonly<Record<string, UnaryCall>> = {
  Submit: newWork(async ({ context, caller }, request) => {
    const queue = textIn(request, 'queue');
    requireGrant(caller, queue, 'submitter');
    const body = bodyOf(request, 'queue');
    return (await submitTask(context, caller, { queue, body })).result;
  }),
  SubmitBatch: newWork(async ({ context, caller }, request) => {
    const queue = textIn(request, 'queue');
    requireGrant(caller, queue, 'submitter');
    const tasks = (request['tasks'] ?? []) as JsonObject[];
    const body = tasks.map((task) => bodyOf(task, 'queue'));
    return { results: await submitBatch(context, caller, { queue, body }) };
  }),
  GetTask: newWork(async ({ context, caller, queries }, request) => {
    const leaseToken = textIn(request, 'lease_token') || undefined;
    const query = queries.getTask.read(bodyOf(request, 'id', 'lease_token'));
    const waitMs = query['wait_ms'] as number | undefined;
    const task = await getTask(context, caller, { id: textIn(request, 'id'), leaseToken, waitMs });
    const { result, ...rest } = task;
    return { ...rest, ...(result !== null && { result: bytesOfJson(result) }) };
  }),
  ListTasks: upkeep(({ context, caller, queries }, request) => {
    const queue = textIn(request, 'queue');
    requireGrant(caller, queue, 'operator');
    const { status, ...rest } = bodyOf(request, 'queue');
    // An empty list means any status.
    const given = (status as string[] | undefined)?.length ? { ...rest, status } : rest;
    const query = queries.listTasks.read(given) as Omit<ListTasksRequest, 'queue'>;
    return listTasks(context, { ...query, queue });
  }),
  CancelTask: upkeep(({ context, caller }, request) =>
    cancelTask(context, caller, { id: textIn(request, 'id'), body: bodyOf(request, 'id') }),
  ),
  Complete: upkeep(({ context, caller }, request) => {
    const { id, leaseToken, body } = settleRequest(request);
    const { result: given } = body;
    const settled = typeof given === 'string' ? { ...body, result: jsonOfBytes(given) } : body;
    return completeTask(context, caller, { id, leaseToken, body: settled });
  }),
  Fail: upkeep(({ context, caller }, request) => failTask(context, caller, settleRequest(request))),
  Extend: upkeep(({ context, caller }, request) => {
    const { id, leaseToken, body } = settleRequest(request);
    const { progress } = body;
    const extended = progress ? { ...body, progress: bodyOf(progress as JsonObject, 'at') } : body;
    return extendTask(context, caller, { id, leaseToken, body: extended });
  }),
  Stats: newWork(({ context, caller }, request) => {
    const queue = textIn(request, 'queue');
    requireGrant(caller, queue, 'submitter');
    return getStats(context, { queue });
  }),
};

/** In the JSON form of a message, bytes are base64. */
function bytesOfJson(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64');
}

function jsonOfBytes(base64: string): JsonValue {
  try {
    return JSON.parse(Buffer.from(base64, 'base64').toString()) as JsonValue;
  } catch {
    throw failBody('INVALID_TASK', [{ pointer: '/result', message: 'must be JSON' }]);
  }
}

function settleRequest(request: JsonObject) {
  const body = bodyOf(request, 'id', 'lease_token');
  return { id: textIn(request, 'id'), leaseToken: textIn(request, 'lease_token'), body };
}

const maxWaitMs = 30_000;

export interface ClaimStream {
  request: JsonObject;
  remoteIp: string | null;
  /** Aborted when the call ends. */
  signal: AbortSignal;
  /** Resolves when more can be written. */
  write: (task: object) => Promise<void>;
}

/** Streams tasks as they become available, at most `max_outstanding` unsettled ones. */
export async function streamTasks(
  context: QueueContext,
  caller: Principal,
  { request, remoteIp, signal, write }: ClaimStream,
): Promise<void> {
  const { max_outstanding: most = 1 } = request;
  const body = bodyOf(request, 'queue', 'max_outstanding');
  const queue = textIn(request, 'queue');
  requireGrant(caller, queue, 'worker');
  const outstanding = new Set<string>();
  let onSettled = () => {};
  const unsubscribe = context.delivery.onPulledLeaseEnded((token) => {
    if (outstanding.delete(token)) onSettled();
  });
  signal.addEventListener('abort', () => onSettled());
  try {
    while (!signal.aborted) {
      const limit = Number(most) - outstanding.size;
      if (limit <= 0 && outstanding.size > 0) {
        await new Promise<void>((resolve) => (onSettled = resolve));
        continue;
      }
      const claim = { ...body, limit, wait_ms: maxWaitMs };
      const { tasks } = await claimTasks(context, caller, { queue, body: claim, remoteIp, signal });
      if (tasks.length === 0 && context.readiness.isDraining) return;
      for (const task of tasks) {
        outstanding.add(task.lease_token);
        await write(task);
      }
    }
  } finally {
    unsubscribe();
  }
}
