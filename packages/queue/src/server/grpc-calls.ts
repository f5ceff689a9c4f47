import {
  type DescMethod,
  fromBinary,
  fromJson,
  type JsonObject,
  type JsonValue,
  type Message,
  toBinary,
  toJson,
} from '@bufbuild/protobuf';
import { openApiDocument } from '@millrace/contract/documents';
import { messageOf } from '@millrace/kit/errors';
import {
  type DocumentSchemas,
  operationsOf,
  parameterReader,
  type ParameterReader,
} from '@millrace/kit/http';
import type { ServerCall } from '@millrace/wire/grpc';
import { type Principal, type QueueContext, requireGrant } from '../operations/base/context.js';
import type { Urgency } from '../operations/base/limits.js';
import { fail, failBody } from '../operations/base/refusal.js';
import { submitFlow } from '../operations/flows.js';
import {
  getTaskRun,
  getTaskTree,
  recordSteps,
  sendQueueSignal,
  sendSignal,
} from '../operations/runs.js';
import { completeTask, extendTask, failTask } from '../operations/settle.js';
import { getStats } from '../operations/stats.js';
import { submitBatch, submitTask } from '../operations/submit.js';
import { cancelTask, getTask, listTasks, type ListTasksRequest } from '../operations/tasks.js';

export interface CallContext {
  context: QueueContext;
  caller: Principal;
  queries: QueryReaders;
}

/** A call that goes on until it is over or aborted. */
export interface StreamedCall {
  call: ServerCall;
  /** Checks the token again: a stream may outlive it. */
  identify: () => Principal;
  /** Aborted when the call ends. */
  signal: AbortSignal;
  /** True while all peers together hold too much. */
  isMemoryFull: () => boolean;
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
    const queue = queueIn(request, 'INVALID_TASK');
    requireGrant(caller, queue, 'submitter');
    const body = bodyOf(request, 'queue');
    return (await submitTask(context, caller, { queue, body })).result;
  }),
  SubmitBatch: newWork(async ({ context, caller }, request) => {
    const queue = queueIn(request, 'INVALID_TASK');
    requireGrant(caller, queue, 'submitter');
    const tasks = (request['tasks'] ?? []) as JsonObject[];
    const faults = tasks.flatMap((task, index) => {
      const isOther = ![queue, ''].includes(textIn(task, 'queue'));
      const message = `must be ${queue} or empty; a batch is for one queue`;
      return isOther ? [{ pointer: `/tasks/${index}/queue`, message }] : [];
    });
    if (faults.length > 0) throw failBody('INVALID_TASK', faults);
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
    const queue = queueIn(request, 'INVALID_QUERY');
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
    const { steps: _steps, ...rest } = jsonIn(body, 'result');
    const listed = stepsIn(body);
    const settled = listed.length > 0 ? { ...rest, steps: listed } : rest;
    return completeTask(context, caller, { id, leaseToken, body: settled });
  }),
  SubmitFlow: newWork(async ({ context, caller }, request) => {
    const tasks = ((request['tasks'] ?? []) as { key?: string; task?: JsonObject }[]).map(
      ({ key = '', task }) => ({ key, queue: '', ...task }),
    );
    const faults = tasks.flatMap(({ queue }, index) =>
      queue === '' ? [{ pointer: `/tasks/${index}/task/queue`, message: 'is required' }] : [],
    );
    if (faults.length > 0) throw failBody('INVALID_FLOW', faults);
    return (await submitFlow(context, caller, { ...request, tasks })).result;
  }),
  RecordSteps: upkeep(({ context, caller }, request) => {
    const body = { lease_token: textIn(request, 'lease_token'), steps: stepsIn(request) };
    return recordSteps(context, caller, { id: textIn(request, 'id'), body });
  }),
  SendSignal: newWork(async ({ context, caller }, request) => {
    const id = textIn(request, 'task_id');
    const queue = textIn(request, 'queue');
    const body = jsonIn(bodyOf(request, 'task_id', 'queue'), 'payload');
    const byKey = queue !== '' || request['unique_key'] !== undefined;
    if (byKey === (id !== '') || (byKey && queue === '')) {
      const message = 'is needed, or queue and unique_key instead of it';
      throw failBody('INVALID_TASK', [{ pointer: '/task_id', message }]);
    }
    if (id === '') requireGrant(caller, queue, 'submitter');
    const { payload, ...signal } =
      id === ''
        ? await sendQueueSignal(context, { queue, body })
        : await sendSignal(context, caller, { id, body });
    return payload === null ? signal : { ...signal, payload: bytesOfJson(payload) };
  }),
  GetRun: upkeep(({ context, caller }, request) => {
    const leaseToken = textIn(request, 'lease_token') || undefined;
    return getTaskRun(context, caller, { id: textIn(request, 'id'), leaseToken });
  }),
  GetTree: upkeep(({ context, caller }, request) =>
    getTaskTree(context, caller, { id: textIn(request, 'id') }),
  ),
  Fail: upkeep(({ context, caller }, request) => failTask(context, caller, settleRequest(request))),
  Extend: upkeep(({ context, caller }, request) => {
    const { id, leaseToken, body } = settleRequest(request);
    const { progress } = body;
    const extended = progress ? { ...body, progress: bodyOf(progress as JsonObject, 'at') } : body;
    return extendTask(context, caller, { id, leaseToken, body: extended });
  }),
  Stats: newWork(({ context, caller }, request) => {
    const queue = queueIn(request, 'INVALID_QUERY');
    requireGrant(caller, queue, 'submitter');
    return getStats(context, { queue });
  }),
};

/** In the JSON form of a message, bytes are base64. */
function bytesOfJson(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64');
}

function jsonOfBytes(base64: string, pointer: string): JsonValue {
  try {
    return JSON.parse(Buffer.from(base64, 'base64').toString()) as JsonValue;
  } catch {
    throw failBody('INVALID_TASK', [{ pointer, message: 'must be JSON' }]);
  }
}

/** The queue that a request names. */
export function queueIn(
  request: JsonObject,
  code: 'INVALID_TASK' | 'INVALID_QUERY' | 'INVALID_CLAIM',
): string {
  const queue = textIn(request, 'queue');
  if (queue === '') throw fail(code, '/queue is required.');
  return queue;
}

function stepsIn(request: JsonObject): JsonObject[] {
  const steps = (request['steps'] ?? []) as JsonObject[];
  return steps.map((step, index) => jsonIn(step, 'result', `/steps/${index}`));
}

function settleRequest(request: JsonObject) {
  const body = bodyOf(request, 'id', 'lease_token');
  const leaseToken = textIn(request, 'lease_token');
  if (leaseToken === '') {
    throw failBody('INVALID_TASK', [{ pointer: '/lease_token', message: 'is required' }]);
  }
  return { id: textIn(request, 'id'), leaseToken, body };
}

/** Checks the fields that are query parameters of the REST API. */
export interface QueryReaders {
  getTask: ParameterReader;
  listTasks: ParameterReader;
}

export function queryReaders(schemas: DocumentSchemas): QueryReaders {
  const operations = operationsOf(openApiDocument('queue'));
  const reader = (id: string): ParameterReader => {
    const operation = operations.find((known) => known.id === id);
    const options = { place: 'query', fillDefaults: true, invalidCode: 'INVALID_QUERY' } as const;
    const found = operation && parameterReader(operation, schemas, options);
    if (!found) throw new Error(`The operation ${id} has no query`);
    return found;
  };
  return { getTask: reader('getTask'), listTasks: reader('listTasks') };
}

/** Messages of one method as JSON with the field names of the REST API. */
export class MethodCodec {
  constructor(private readonly method: DescMethod) {}

  get path(): string {
    return `/${this.method.parent.typeName}/${this.method.name}`;
  }

  read(bytes: Uint8Array): JsonObject {
    const { input } = this.method;
    let message: Message;
    try {
      message = fromBinary(input, bytes, { readUnknownFields: false });
    } catch (error) {
      throw this.#invalid(`The message is not a valid ${input.name}: ${messageOf(error)}.`);
    }
    const payloads = holders(message).map((holder) => takePayload(holder, emptyBytes));
    try {
      const json = toJson(input, message, { useProtoFieldName: true }) as JsonObject;
      holders(json).forEach((holder, i) => {
        const bytes = payloads[i] as Uint8Array | undefined;
        if (bytes && bytes.length > 0) holder.payload = base64(bytes);
      });
      return json;
    } catch {
      throw this.#invalid('The request has a timestamp or a number that is out of range.');
    }
  }

  write(message: object): Uint8Array {
    const { output } = this.method;
    const { payload, ...rest } = message as Holder;
    const answer = fromJson(output, withJsonBytes(rest) as JsonValue, {
      ignoreUnknownFields: true,
    });
    if (typeof payload === 'string') (answer as Holder).payload = Buffer.from(payload, 'base64');
    return toBinary(output, answer);
  }

  #invalid(detail: string): Error {
    return fail(this.method.name === 'ListTasks' ? 'INVALID_QUERY' : 'INVALID_TASK', detail);
  }
}

/** Lists whose items have JSON of any kind, which a message has as bytes. */
const jsonFields: Readonly<Record<string, string>> = {
  steps: 'result',
  dependencies: 'result',
  children: 'result',
  signals: 'payload',
};

function withJsonBytes(message: object): object {
  const changed = Object.entries(message).flatMap(([name, list]: [string, unknown]) => {
    const field = jsonFields[name];
    if (field === undefined || !Array.isArray(list)) return [];
    return [[name, list.map((item: unknown) => bytesIn(item, field))]];
  });
  return changed.length > 0 ? { ...message, ...Object.fromEntries(changed) } : message;
}

function bytesIn(item: unknown, field: string): unknown {
  // The steps of a tree are names, and its children have no results.
  if (typeof item !== 'object' || item === null || !(field in item)) return item;
  const { [field]: value, ...rest } = item as Record<string, unknown>;
  return value === null ? rest : { ...rest, [field]: bytesOfJson(value) };
}

function jsonIn(item: JsonObject, field: string, at = ''): JsonObject {
  const value = item[field];
  if (typeof value !== 'string') return item;
  return { ...item, [field]: jsonOfBytes(value, `${at}/${field}`) };
}

/** Payloads are converted apart: the library takes 20 times as long for large ones. */
interface Holder {
  payload?: unknown;
  tasks?: Holder[];
}

const emptyBytes = new Uint8Array(0);

/** The message itself, or the tasks of a batch. */
function holders(message: object): Holder[] {
  const { tasks } = message as Holder;
  return tasks ?? [message];
}

function takePayload(holder: Holder, left: unknown): unknown {
  const { payload } = holder;
  if (payload !== undefined) holder.payload = left;
  return payload;
}

function base64({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, length).toString('base64');
}

export function textIn(message: JsonObject, name: string): string {
  const value = message[name];
  return typeof value === 'string' ? value : '';
}

/** The fields of a message that belong to the body of the REST call. */
export function bodyOf(message: JsonObject, ...others: string[]): JsonObject {
  return Object.fromEntries(Object.entries(message).filter(([name]) => !others.includes(name)));
}
