import type { JsonObject } from '@bufbuild/protobuf';
import { claimTasks } from '../../operations/claim-tasks.js';
import { completeTask } from '../../operations/complete-task.js';
import type { QueueContext } from '../../operations/context.js';
import { extendTask } from '../../operations/extend-task.js';
import { failTask } from '../../operations/fail-task.js';
import { getStats } from '../../operations/get-stats.js';
import { getTask } from '../../operations/get-task.js';
import { requireGrant, type Principal } from '../../operations/principal.js';
import { submitBatch } from '../../operations/submit-batch.js';
import { submitTask } from '../../operations/submit-task.js';

export type UnaryCall = (
  context: QueueContext,
  caller: Principal,
  request: JsonObject,
) => Promise<object>;

const textIn = (request: JsonObject, name: string): string => {
  const value = request[name];
  return typeof value === 'string' ? value : '';
};

/** The fields of a message that belong to the body of the REST call. */
function bodyOf(message: JsonObject, ...others: string[]): JsonObject {
  return Object.fromEntries(Object.entries(message).filter(([name]) => !others.includes(name)));
}

/** The unary methods: each calls the operation that the REST API calls. */
export const unaryCalls: Readonly<Record<string, UnaryCall>> = {
  Submit: async (context, caller, request) => {
    const queue = textIn(request, 'queue');
    requireGrant(caller, queue, 'submitter');
    const body = bodyOf(request, 'queue');
    return (await submitTask(context, caller, { queue, body })).result;
  },
  SubmitBatch: async (context, caller, request) => {
    const queue = textIn(request, 'queue');
    requireGrant(caller, queue, 'submitter');
    const tasks = (request['tasks'] ?? []) as JsonObject[];
    const body = tasks.map((task) => bodyOf(task, 'queue'));
    return { results: await submitBatch(context, caller, { queue, body }) };
  },
  GetTask: (context, caller, request) => {
    const leaseToken = textIn(request, 'lease_token') || undefined;
    return getTask(context, caller, { id: textIn(request, 'id'), leaseToken });
  },
  Complete: (context, caller, request) => completeTask(context, caller, settleRequest(request)),
  Fail: (context, caller, request) => failTask(context, caller, settleRequest(request)),
  Extend: (context, caller, request) => extendTask(context, caller, settleRequest(request)),
  Stats: (context, caller, request) => {
    const queue = textIn(request, 'queue');
    requireGrant(caller, queue, 'submitter');
    return getStats(context, { queue });
  },
};

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
