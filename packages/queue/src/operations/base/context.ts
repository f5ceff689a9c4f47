import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { Allowlist } from '@millrace/kit/outbound';
import type { Random } from '@millrace/kit/random';
import { Grants, type RoleLevels, type TokenHolder } from '@millrace/kit/tokens';
import type { BackgroundControl, History, TaskObserver } from '../../background/index.js';
import type { Queue, SecretLookup } from '../../core/queue.js';
import type { FullTask } from '../../core/task.js';
import type { Delivery } from '../../delivery/index.js';
import type { TaskStore } from '../../storage/port/task-store.js';
import type { BodyChecks } from './bodies.js';
import type { Cursors } from './cursors.js';
import type { Readiness } from './readiness.js';
import { fail } from './refusal.js';
import type { SubmitLimits } from './limits.js';
import type { TaskWaits } from './task-waits.js';

/** The dependencies of every operation. */
export interface QueueContext {
  readonly store: TaskStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly delivery: DeliveryControl;
  readonly background: BackgroundControl;
  readonly history: Pick<History, 'read' | 'totals' | 'unsaved'>;
  readonly observer: TaskObserver;
  readonly findSecret: SecretLookup;
  /** Why the newest secrets file is not in use; undefined if it is. */
  readonly secretsFault: () => string | undefined;
  readonly allowlist: Allowlist;
  readonly cursors: Cursors;
  readonly submitLimits: SubmitLimits;
  readonly checks: BodyChecks;
  readonly readiness: Readiness;
  readonly waits: TaskWaits;
  readonly scheduleLimits: { readonly maxCount: number; readonly maxBytes: number };
  /** Writes of schedules, one at a time for each queue. */
  readonly scheduleWrites: TurnsByKey;
  /** Maximum waiting claims of a principal on a queue. */
  readonly maxWaitingClaims: number;
}

/** The calls of delivery that operations make. */
export type DeliveryControl = Pick<
  Delivery,
  | 'breakersOf'
  | 'hasNoWorker'
  | 'queueChanged'
  | 'queueDeleted'
  | 'waitingFor'
  | 'knownQueue'
  | 'queueOfLease'
  | 'claim'
  | 'waitingClaims'
  | 'handBack'
  | 'abandon'
  | 'workers'
  | 'onPulledLeaseEnded'
  | 'settleAll'
  | 'waitingForAll'
  | 'cancelled'
  | 'fail'
  | 'stepsRecorded'
  | 'extend'
  | 'probe'
>;

export async function requireQueue({ store }: QueueContext, name: string): Promise<Queue> {
  const queue = await store.getQueue(name);
  if (queue) return queue;
  throw queueNotFound(name);
}

export function queueNotFound(name: string): Error {
  return fail(
    'QUEUE_NOT_FOUND',
    `There is no queue ${name}; an admin can create it with PUT .../config.`,
  );
}

export interface FoundTask {
  task: FullTask;
  queue: Queue;
}

/** The task and its queue, if the caller has a grant there and may act on it. */
export async function requireTask(
  { store }: QueueContext,
  caller: Principal,
  id: string,
  authorize?: (task: FullTask) => void,
): Promise<FoundTask> {
  const found = await store.getTask(id.toUpperCase());
  // Others do not learn that the id exists.
  if (!found || 'purgedAt' in found || !hasGrant(caller, found.queue)) throw taskNotFound(id);
  authorize?.(found);
  const queue = await store.getQueue(found.queue);
  // The queue was deleted in between, and the task with it.
  if (!queue) throw taskNotFound(id);
  return { task: found, queue };
}

export function taskNotFound(id: string): Error {
  return fail('TASK_NOT_FOUND', `There is no task ${id}; it may have been purged or expired.`);
}

export type Role = 'submitter' | 'worker' | 'operator' | 'admin';

/** In ascending order; a submitter cannot claim and a worker cannot submit. */
export const roleLevels: RoleLevels<Role> = [['submitter', 'worker'], 'operator', 'admin'];

/** The caller and its roles on queues. */
export type Principal = TokenHolder<Role>;

export const anonymous: Principal = {
  id: 'anonymous',
  principal: 'anonymous',
  grants: new Grants<Role>(roleLevels, []),
  expiresAt: undefined,
};

/** Whether the caller has any role on the queue. If not, its tasks and jobs do not exist for it. */
export function hasGrant({ grants }: Principal, queue: string): boolean {
  return grants.allows(queue, 'submitter') || grants.allows(queue, 'worker');
}

/** The refusal does not reveal whether the queue exists. */
export function requireGrant({ grants }: Principal, queue: string, role: Role): void {
  if (grants.allows(queue, role)) return;
  throw fail('FORBIDDEN', `This needs the role ${role} on the queue ${queue}, which you lack.`);
}

/** Any role on the queue will do. */
export function requireGrantOn(caller: Principal, queue: string): void {
  if (hasGrant(caller, queue)) return;
  throw fail('FORBIDDEN', `This needs a role on the queue ${queue}, and you have none.`);
}

export function requireGrantSomewhere({ grants }: Principal, role: Role): void {
  if (grants.allowsSomewhere(role)) return;
  throw fail('FORBIDDEN', `This needs the role ${role} on some queue, and you have it on none.`);
}

/** Runs calls with the same key one after the other. */
export class TurnsByKey {
  readonly #last = new Map<string, Promise<unknown>>();

  async run<Result>(key: string, call: () => Promise<Result>): Promise<Result> {
    const before = this.#last.get(key) ?? Promise.resolve();
    // A failed call does not hold up the next one.
    const mine = before.then(call, call);
    this.#last.set(key, mine);
    try {
      return await mine;
    } finally {
      if (this.#last.get(key) === mine) this.#last.delete(key);
    }
  }
}

const maxTries = 8;

/**
 * Changes a record by compare-and-set: `change` runs again if another call or a background task
 * came in between. `what` is for the refusal.
 */
export async function retryOnConflict<Result>(
  what: string,
  change: () => Promise<Result | 'conflict'>,
): Promise<Result> {
  for (let tries = 0; tries < maxTries; tries++) {
    const result = await change();
    if (result !== 'conflict') return result;
  }
  throw fail('RATE_LIMITED', `${what} keeps changing; try again in a moment.`, {
    retryAfterMs: 1_000,
  });
}
