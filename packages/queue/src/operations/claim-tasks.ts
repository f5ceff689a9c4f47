import type { QueueSchema } from '@millrace/contract/queue';
import { type Principal, type QueueContext, requireQueue } from './base/context.js';
import { readRuns } from '../storage/port/flow-runs.js';
import { toClaimedRun, toWholeTask } from './base/bodies.js';
import { fail, rateLimited } from './base/refusal.js';

const waitingClaimRetryMs = 1_000;

export interface ClaimTasksRequest {
  queue: string;
  body: unknown;
  /** Null: in process. */
  remoteIp: string | null;
  /** Aborted when the client disconnects. */
  signal?: AbortSignal | undefined;
  /** True while the client reads too slowly to get more tasks. */
  isCongested?: (() => boolean) | undefined;
  /** For a caller in this process: payloads stay bytes. */
  hasBytes?: boolean | undefined;
}

type ClaimedTask = QueueSchema<'ClaimResult'>['tasks'][number];
/** Claimed tasks; a payload is base64, unless the request says otherwise. */
export interface ClaimResult {
  tasks: (Omit<ClaimedTask, 'payload'> & { payload: string | Uint8Array })[];
}

/** Hands back claimed tasks that did not reach their worker. */
export function handBackTasks(
  { delivery }: QueueContext,
  tasks: readonly Pick<ClaimedTask, 'id' | 'lease_token'>[],
): Promise<void> {
  return delivery.handBack(tasks.map(({ id, lease_token: token }) => ({ id, token })));
}

/** Claims tasks of a pull queue for a worker, and waits for the first one. */
export async function claimTasks(
  context: QueueContext,
  caller: Principal,
  request: ClaimTasksRequest & { hasBytes?: undefined },
): Promise<QueueSchema<'ClaimResult'>>;
export async function claimTasks(
  context: QueueContext,
  caller: Principal,
  request: ClaimTasksRequest,
): Promise<ClaimResult>;
export async function claimTasks(
  context: QueueContext,
  { principal }: Principal,
  { queue: name, body, remoteIp, signal, isCongested, hasBytes }: ClaimTasksRequest,
): Promise<ClaimResult> {
  const queue = await requireQueue(context, name);
  const { worker, limit, wait_ms, lease_ms, handlers, labels } = context.checks.claim.read(body);
  if (queue.config.callback.protocol !== 'pull') {
    throw fail(
      'QUEUE_NOT_PULL',
      `The queue ${name} delivers by callback. Set callback.protocol to pull to claim from it.`,
    );
  }
  const { maxWaitingClaims, delivery } = context;
  if (delivery.waitingClaims(name, principal) >= maxWaitingClaims) {
    throw rateLimited({
      name: 'claims',
      detail: `${principal} has ${maxWaitingClaims} claims waiting in the queue ${name}, the limit.`,
      retryAfterMs: waitingClaimRetryMs,
      quota: maxWaitingClaims,
    });
  }
  const tasks = await delivery.claim(name, {
    worker,
    principal,
    remoteIp,
    limit,
    waitMs: wait_ms,
    leaseMs: lease_ms,
    handlers,
    labels,
    signal,
    isCongested,
  });
  const inFlow = tasks.filter(({ flow }) => flow);
  const runs = inFlow.length > 0 ? await readRuns(context.store, inFlow) : undefined;
  return {
    tasks: tasks.map((task) => {
      const run = runs?.get(task.id);
      const claimed = { lease_token: task.lease.token, ...(run && toClaimedRun(run)) };
      return Object.assign(toWholeTask(task, queue, hasBytes ? task.payload : undefined), claimed);
    }),
  };
}
