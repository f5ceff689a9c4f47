import type { QueueSchema } from '@millrace/contract/queue';
import type { Queue } from '../core/queue.js';
import type { QueueContext } from './base/context.js';
import type { InsertResult, NewTask } from '../storage/port/task-store.js';
import { toEnvelope, toTombstone } from './base/envelope.js';
import { queueNotFound, requireQueue } from './base/find.js';
import { newTask } from './new-task.js';
import { hasGrant, type Principal } from './base/principal.js';
import { fail, rateLimited } from './base/refusal.js';

export interface SubmitOutcome {
  result: QueueSchema<'SubmitResult'>;
  /** The id was used before; nothing was stored. */
  isReplay: boolean;
}

/**
 * Accepts one task for a configured queue. The client's id is an idempotency key: a repeated
 * submit returns the existing task.
 */
export async function submitTask(
  context: QueueContext,
  caller: Principal,
  { queue: name, body }: { queue: string; body: unknown },
): Promise<SubmitOutcome> {
  const { store, clock, random, observer } = context;
  const queue = await requireQueue(context, name);
  const now = clock.now();
  const by = caller.principal;
  const newId = () => random.ulid(now);
  const task = newTask(context.checks.task, body, { queue, now, by, newId });
  const allowance = context.submitLimits.take({
    queue: name,
    principal: by,
    queuePerSecond: queue.config.limits.submit_per_second,
    wanted: 1,
  });
  if (allowance.refusal) {
    // An existing task is returned even if the limit allows no new one.
    const known = await knownTask(context, task, body);
    if (!known) throw allowance.refusal;
    return submitOutcome(caller, queue, task, known);
  }
  const tasks = observer.inTrace([task]);
  const results = await store.insertTasks(tasks, now);
  observer.submitted(tasks, results, now);
  return submitOutcome(caller, queue, task, results[0]!);
}

/** The stored task with this id, if the submitter chose the id. */
export async function knownTask(
  { store }: QueueContext,
  { id }: NewTask,
  body: unknown,
): Promise<InsertResult | undefined> {
  if ((body as { id?: string }).id === undefined) return undefined;
  const found = await store.getTask(id);
  if (!found) return undefined;
  return 'purgedAt' in found
    ? { kind: 'purged', tombstone: found }
    : { kind: 'existing', task: found };
}

/** The result of a submit, or throws the refusal. */
export function submitOutcome(
  caller: Principal,
  queue: Queue,
  task: NewTask,
  result: InsertResult,
): SubmitOutcome {
  switch (result.kind) {
    case 'stored':
      return { result: toEnvelope(result.task, queue), isReplay: false };
    case 'existing':
      // The grant covers this queue only, so a guessed id must not return a task of another one.
      if (result.task.queue !== queue.name) throw idConflict(caller, task.id, result.task.queue);
      return { result: toEnvelope(result.task, queue), isReplay: true };
    case 'purged':
      if (result.tombstone.queue !== queue.name) {
        throw idConflict(caller, task.id, result.tombstone.queue);
      }
      return { result: toTombstone(result.tombstone), isReplay: true };
    case 'queue_not_found':
      throw queueNotFound(queue.name);
    case 'queue_full':
      throw queueFull(queue);
    default:
      throw new Error('Unexpected result of the store', { cause: result satisfies never });
  }
}

const fullRetryAfterMs = 1_000;

export function queueFull({ name, config }: Queue): Error {
  const { max_pending: maxPending } = config.limits;
  return rateLimited({
    name: 'pending',
    detail:
      `The queue ${name} holds ${maxPending} pending tasks, as many as it may; ` +
      'send this again later.',
    retryAfterMs: fullRetryAfterMs,
    quota: maxPending,
  });
}

/** Only callers with a grant on the other queue learn where the id is in use. */
function idConflict(caller: Principal, id: string, queue: string): Error {
  const reason = hasGrant(caller, queue)
    ? 'is in use in another queue'
    : 'cannot be used in this queue';
  return fail('ID_CONFLICT', `The id ${id} ${reason}; submit with a new one.`);
}
