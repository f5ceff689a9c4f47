import type { QueueSchema } from '@millrace/contract/queue';
import { type FieldError, Refusal } from '@millrace/kit/errors';
import { isBase64 } from '@millrace/kit/http';
import type { Queue } from '../core/queue.js';
import { taskOptions } from '../storage/port/store-parts.js';
import type { InsertResult, NewTask } from '../storage/port/task-store.js';
import { type BodyCheck, timeIn, toEnvelope, toTombstone } from './base/bodies.js';
import {
  checkFlow,
  isHeldChild,
  readFlow,
  readNamed,
  refusedByOthers,
  taskEnded,
  unknownDependency,
  unknownParent,
} from './base/dependencies.js';
import {
  hasGrant,
  type Principal,
  type QueueContext,
  queueNotFound,
  requireQueue,
} from './base/context.js';
import { fail, failBody, problemOf, rateLimited } from './base/refusal.js';

/** The payload of a caller that has bytes: its body has none. */
type Payload = Uint8Array | undefined;

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
  { queue: name, body, payload }: { queue: string; body: unknown; payload?: Payload },
): Promise<SubmitOutcome> {
  const { store, clock, random, observer } = context;
  const queue = await requireQueue(context, name);
  const now = clock.now();
  const by = caller.principal;
  const newId = () => random.ulid(now);
  const task = newTask(context.checks.task, body, { queue, now, by, newId, payload });
  const isUnchecked = task.flow && !isHeldChild(task);
  if (isUnchecked) checkFlow(caller, task, await readNamed(context, [task]));
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
    case 'unknown_dependency':
      throw failBody('INVALID_TASK', [unknownDependency(result.id)]);
    case 'unknown_parent':
      throw failBody('INVALID_TASK', [unknownParent(task.flow!.parentId!)]);
    case 'parent_ended':
      throw taskEnded(task.flow!.parentId!);
    case 'parent_lease_lost':
      throw fail('LEASE_LOST', `The token does not hold the lease of ${task.flow!.parentId!}.`);
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
export function idConflict(caller: Principal, id: string, queue: string): Error {
  const reason = hasGrant(caller, queue)
    ? 'is in use in another queue'
    : 'cannot be used in this queue';
  return fail('ID_CONFLICT', `The id ${id} ${reason}; submit with a new one.`);
}

type ItemResult = QueueSchema<'BatchItemResult'>;

export const maxItems = 1_000;

interface SubmitBatchRequest {
  queue: string;
  body: unknown;
  /** Of the items, in order. */
  payloads?: readonly Payload[] | undefined;
}

/**
 * Accepts many tasks in one commit. Each item is validated like a single submit, so that an
 * invalid one does not block the others.
 */
export async function submitBatch(
  context: QueueContext,
  caller: Principal,
  { queue: name, body, payloads }: SubmitBatchRequest,
): Promise<ItemResult[]> {
  const queue = await requireQueue(context, name);
  const items = readItems(body);
  const now = context.clock.now();
  const by = caller.principal;
  const newId = () => context.random.ulid(now);
  const results: ItemResult[] = [];
  const good: { index: number; task: NewTask }[] = [];
  const tasks = items.map((item, index) => {
    try {
      const payload = payloads?.[index];
      return newTask(context.checks.task, item, { queue, now, by, newId, payload });
    } catch (error) {
      results[index] = rejected(index, error);
      return undefined;
    }
  });
  if (tasks.some((task) => task?.flow)) await checkFlows(context, caller, tasks, results);
  tasks.forEach((task, index) => {
    if (task && !results[index]) good.push({ index, task });
  });

  const allowance = context.submitLimits.take({
    queue: name,
    principal: by,
    queuePerSecond: queue.config.limits.submit_per_second,
    wanted: good.length,
  });
  const settle = (index: number, run: () => QueueSchema<'SubmitResult'>) => {
    try {
      results[index] = { index, status: 202, envelope: run() };
    } catch (error) {
      results[index] = rejected(index, error);
    }
  };
  const taken = good.slice(0, allowance.granted);
  if (taken.length > 0) {
    const traced = context.observer.inTrace(taken.map(({ task }) => task));
    const stored = await context.store.insertTasks(traced, now);
    context.observer.submitted(traced, stored, now);
    if (stored.some(({ kind }) => kind === 'queue_not_found')) throw queueNotFound(name);
    taken.forEach(({ index, task }, at) => {
      settle(index, () => submitOutcome(caller, queue, task, stored[at]!).result);
    });
  }
  for (const { index, task } of good.slice(allowance.granted)) {
    const known = await knownTask(context, task, items[index]);
    settle(index, () => {
      if (!known) throw allowance.refusal!;
      return submitOutcome(caller, queue, task, known).result;
    });
  }
  return results;
}

/** Refuses items with bad dependencies, and those that depend on refused items. */
async function checkFlows(
  context: QueueContext,
  caller: Principal,
  tasks: readonly (NewTask | undefined)[],
  results: ItemResult[],
): Promise<void> {
  const others = new Set(tasks.flatMap((task) => task?.id ?? []));
  const isUnchecked = (task: NewTask | undefined): task is NewTask =>
    task?.flow !== undefined && !isHeldChild(task);
  const named = await readNamed(context, tasks.filter(isUnchecked), others);
  for (const [index, task] of tasks.entries()) {
    try {
      if (isUnchecked(task)) checkFlow(caller, task, named, others);
    } catch (error) {
      results[index] = rejected(index, error);
    }
  }
  const refused = new Set(tasks.flatMap((_, index) => (results[index] ? [index] : [])));
  const items = tasks.map((task) => ({
    id: task?.id ?? '',
    dependsOn: task?.flow?.dependsOn?.map(({ id }) => id) ?? [],
  }));
  for (const [index, reason] of refusedByOthers(items, refused)) {
    const message =
      reason === 'cycle' ? 'leads back to the task itself' : 'names an item that is refused';
    const error = failBody('INVALID_TASK', [{ pointer: '/depends_on', message }]);
    results[index] = rejected(index, error);
  }
}

function readItems(body: unknown): unknown[] {
  if (!Array.isArray(body)) {
    throw failBody('INVALID_TASK', [{ pointer: '', message: 'must be a list of tasks' }]);
  }
  if (body.length > maxItems) {
    throw fail(
      'BATCH_TOO_LARGE',
      `The batch has ${body.length} tasks; send at most ${maxItems} at once.`,
    );
  }
  return body;
}

/** The refusal of one item, as its entry in the response. */
export function rejected(index: number, error: unknown): QueueSchema<'BatchItemRejected'> {
  if (!(error instanceof Refusal)) throw error;
  const problem = problemOf(error);
  return { index, status: problem.status, error: problem };
}

type Submitted = QueueSchema<'SubmitTaskRequest'>;

export interface Submission {
  queue: Queue;
  now: number;
  by: string;
  newId: () => string;
  payload?: Payload;
}

const maxDelayMs = 30 * 86_400_000;
const maxHeaderBytes = 16_384;
const defaultPriority = 4;
const defaultContentType = 'application/octet-stream';

/** Validates a submit request. Throws the refusal if the task breaks a rule. */
export function newTask(
  check: BodyCheck<Submitted>,
  body: unknown,
  { queue, now, by, newId, payload: bytes }: Submission,
): NewTask {
  const given = check.read(body);
  const faults: FieldError[] = [];
  const payload = bytes ?? readPayload(given.payload ?? '', faults);
  const dueAt = readDueAt(given, now, faults);
  const expiresAt = readExpiresAt(given, now, faults);
  checkHeaders(given.headers, faults);
  if (given.group_key !== undefined && !given.group_key.isWellFormed()) {
    faults.push({ pointer: '/group_key', message: 'has half of a surrogate pair' });
  }
  if (given.debounce_ms !== undefined && given.unique_key === undefined) {
    faults.push({ pointer: '/debounce_ms', message: 'needs a unique_key' });
  }
  const key = readUniqueKey(given, now, faults);
  const isLinked = (given.depends_on ?? given.parent_id) !== undefined;
  const flow = isLinked ? readFlow(given, given.id?.toUpperCase(), faults) : undefined;
  if (faults.length > 0) throw failBody('INVALID_TASK', faults);
  const { limits } = queue.config;
  requirePayloadSize(payload, queue);
  return {
    id: given.id?.toUpperCase() ?? newId(),
    queue: queue.name,
    handlerRef: given.handler_ref,
    payload,
    payloadContentType: given.payload_content_type ?? defaultContentType,
    headers: given.headers ?? {},
    priority: given.priority ?? defaultPriority,
    groupKey: given.group_key ?? null,
    dueAt,
    expiresAt,
    submittedBy: by,
    ...key,
    ...flow,
    maxPending: limits.max_pending,
    options: hasOptions(given) ? taskOptions(given) : undefined,
    isDebounced: given.debounce_ms !== undefined,
  };
}

function hasOptions(given: Parameters<typeof taskOptions>[0]): boolean {
  const { max_attempts, backoff, timeout_ms, retain_ms, labels } = given;
  return (max_attempts ?? backoff ?? timeout_ms ?? retain_ms ?? labels) !== undefined;
}

export function requirePayloadSize({ length }: Uint8Array, { name, config }: Queue): void {
  const { max_payload_bytes: max } = config.limits;
  if (length <= max) return;
  throw fail(
    'PAYLOAD_TOO_LARGE',
    `The payload has ${length} bytes; the queue ${name} takes at most ${max}.`,
  );
}

const maxKeyBytes = 256;

/** The unique key, and until when it is held. */
function readUniqueKey(
  { unique_key: key, unique_for_ms: forMs }: Submitted,
  now: number,
  faults: FieldError[],
): Pick<NewTask, 'uniqueKey' | 'uniqueUntil'> | undefined {
  if (key === undefined) return undefined;
  const pointer = '/unique_key';
  if (!key.isWellFormed()) faults.push({ pointer, message: 'has half of a surrogate pair' });
  if (Buffer.byteLength(key) > maxKeyBytes) {
    faults.push({ pointer, message: `must have at most ${maxKeyBytes} bytes` });
  }
  return { uniqueKey: key, uniqueUntil: forMs === undefined ? null : now + forMs };
}

const noBytes = new Uint8Array(0);

export function readPayload(text: string, faults: FieldError[]): Uint8Array {
  if (text === '') return noBytes;
  // Node's base64 decoder accepts invalid input, so it cannot be the check.
  if (isBase64(text)) return Buffer.from(text, 'base64');
  faults.push({
    pointer: '/payload',
    message: 'must be base64 of RFC 4648: standard alphabet, padded, no line breaks',
  });
  return noBytes;
}

function readDueAt(given: Submitted, now: number, faults: FieldError[]): number {
  const { run_at, delay_ms = 0, debounce_ms = 0 } = given;
  if (run_at === undefined) return now + Math.max(delay_ms, debounce_ms);
  return Math.max(readRunAt(run_at, now, faults), now + debounce_ms);
}

/** A time of at most 30 days ahead; one in the past means now. */
export function readRunAt(text: string, now: number, faults: FieldError[]): number {
  const time = timeIn(text, '/run_at', faults);
  if (time - now > maxDelayMs) {
    faults.push({ pointer: '/run_at', message: 'must be at most 30 days ahead' });
  }
  return Math.max(time, now);
}

function readExpiresAt(
  { expires_at }: Submitted,
  now: number,
  faults: FieldError[],
): number | null {
  if (expires_at === undefined) return null;
  const time = timeIn(expires_at, '/expires_at', faults);
  if (time <= now) faults.push({ pointer: '/expires_at', message: 'must be in the future' });
  return time;
}

function checkHeaders(headers: Submitted['headers'], faults: FieldError[]): void {
  if (headers === undefined) return;
  let bytes = 0;
  for (const name in headers) bytes += name.length + headers[name]!.length;
  if (bytes > maxHeaderBytes) {
    const message = `must have at most ${maxHeaderBytes} bytes over all names and values`;
    faults.push({ pointer: '/headers', message });
  }
}
