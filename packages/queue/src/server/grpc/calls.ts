import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { cancelTask } from '../../operations/cancel-task.js';
import { completeTask } from '../../operations/complete-task.js';
import type { QueueContext } from '../../operations/base/context.js';
import { extendTask } from '../../operations/extend-task.js';
import { failTask } from '../../operations/fail-task.js';
import { getStats } from '../../operations/get-stats.js';
import { getTask } from '../../operations/get-task.js';
import type { Urgency } from '../../operations/base/load.js';
import { listTasks, type ListTasksRequest } from '../../operations/list-tasks.js';
import { requireGrant, type Principal } from '../../operations/base/principal.js';
import { failBody } from '../../operations/base/refusal.js';
import { submitBatch } from '../../operations/submit-batch.js';
import { submitTask } from '../../operations/submit-task.js';
import { bodyOf, textIn } from './messages.js';
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
