import type { QueueSchema } from '@millrace/contract/queue';
import type { FieldError } from '@millrace/kit/errors';
import { attemptRecord, cutText, maxMessageBytes, urlWithoutQuery } from '../core/outcome.js';
import { isEnded } from '../core/flow.js';
import type { Queue } from '../core/queue.js';
import type { Task, TaskStatus } from '../core/task.js';
import type { UpdateTaskChange } from '../storage/port/task-changes.js';
import type { TaskFilter, TaskOrder, TaskPosition } from '../storage/port/task-list.js';
import { type Envelope, timeIn, toBreaker, toEnvelope, toFullTask } from './base/bodies.js';
import {
  type FoundTask,
  type Principal,
  type QueueContext,
  requireGrant,
  requireQueue,
  requireTask,
  taskNotFound,
} from './base/context.js';
import { type CursorScope, defaultPageSize, staleCursor } from './base/cursors.js';
import { dependenciesOf } from './base/dependencies.js';
import { fail, failBody, failQuery } from './base/refusal.js';
import { readPayload, readRunAt, requirePayloadSize } from './submit.js';

/** How often a task is read that may end on another server. */
const pollMs = 1_000;
/** The holder of the lease waits for a cancel, which is reported. */
const heldPollMs = 10_000;

export interface GetTaskRequest {
  id: string;
  leaseToken?: string | undefined;
  waitMs?: number | undefined;
}

/** Returns a task, if asked so when it has ended; for a pending one, also what it waits for. */
export async function getTask(
  context: QueueContext,
  caller: Principal,
  request: GetTaskRequest,
): Promise<QueueSchema<'Task'>> {
  const { waitMs = 0 } = request;
  let found = await findTask(context, caller, request);
  if (waitMs > 0 && !hasEnded(found.task.status)) {
    found = await ended(context, caller, request, found);
  }
  const { task, queue } = found;
  const full = toFullTask(task, queue);
  if (task.status === 'PENDING') {
    full.waiting_for = await context.delivery.waitingFor(task, queue);
    const { handlers } = await context.delivery.breakersOf(queue.name);
    const breaker = handlers.find(({ handler }) => handler === task.handlerRef);
    if (breaker && breaker.phase !== 'closed') full.breaker = toBreaker(breaker);
  }
  const dependsOn = (await dependenciesOf(context, [task])).get(task.id);
  if (dependsOn) full.depends_on = dependsOn;
  return full;
}

function findTask(
  context: QueueContext,
  caller: Principal,
  { id, leaseToken }: GetTaskRequest,
): Promise<FoundTask> {
  return requireTask(context, caller, id, (found) => {
    const { queue: name, lease } = found;
    const isHeld = lease?.token === leaseToken && (lease?.expiresAt ?? 0) > context.clock.now();
    if (!isHeld || !caller.grants.allows(name, 'worker')) requireGrant(caller, name, 'submitter');
  });
}

async function ended(
  context: QueueContext,
  caller: Principal,
  request: GetTaskRequest,
  first: FoundTask,
): Promise<FoundTask> {
  const { clock, waits } = context;
  const { id } = first.task;
  const endsAt = clock.monotonic() + (request.waitMs ?? 0);
  const stepMs = request.leaseToken === undefined ? pollMs : heldPollMs;
  let found = first;
  const check = async () => {
    found = await findTask(context, caller, request);
    return hasEnded(found.task.status);
  };
  while (waits.isOpen) {
    const leftMs = endsAt - clock.monotonic();
    if (leftMs <= 0) break;
    await waits.until(id, caller.principal, Math.min(leftMs, stepMs), check);
    if (await check()) break;
  }
  return found;
}

function hasEnded(status: TaskStatus): boolean {
  return status === 'SUCCEEDED' || status === 'DEAD';
}

export interface ListTasksRequest extends GivenTaskFilter {
  queue: string;
  order?: TaskOrder;
  limit?: number;
  cursor?: string;
}

/** One page of a queue's tasks. */
export async function listTasks(
  context: QueueContext,
  request: ListTasksRequest,
): Promise<QueueSchema<'TaskPage'>> {
  const { store, cursors, delivery } = context;
  const { queue: name, order = 'newest', limit = defaultPageSize, cursor = '', ...given } = request;
  const faults: FieldError[] = [];
  const filter = taskFilter(given, '', faults);
  const { statuses } = filter;
  if (order === 'next' && !(statuses?.length === 1 && statuses[0] === 'PENDING')) {
    faults.push({ pointer: '/order', message: 'can be "next" only with status=PENDING' });
  }
  if (faults.length > 0) throw failQuery(faults);
  const queue = await requireQueue(context, name);
  const scope: CursorScope = {
    list: 'tasks',
    filter: { queue: name, order, ...filter, statuses: statuses?.join() },
    incarnation: queue.incarnation,
  };
  const after = cursor === '' ? undefined : placeOf(cursors.open(scope, cursor));
  const page = await store.listTasks({ queue: name, filter, order, after, limit });
  const reasons = await delivery.waitingForAll(page.tasks, queue);
  const dependencies = await dependenciesOf(context, page.tasks);
  return {
    tasks: page.tasks.map((task) => {
      const reason = reasons.get(task.id);
      const dependsOn = dependencies.get(task.id);
      return {
        ...toEnvelope(task, queue),
        ...(reason && { waiting_for: reason }),
        ...(dependsOn && { depends_on: dependsOn }),
      };
    }),
    next_cursor: page.next ? cursors.seal(scope, [page.next.at, page.next.id]) : '',
  };
}

function placeOf(opened: readonly unknown[] | undefined): TaskPosition {
  if (!opened) throw staleCursor();
  const [at, id] = opened as [number, string];
  return { at, id };
}

/** How many tasks of a queue match a filter. */
export async function countTasks(
  context: QueueContext,
  { queue, ...given }: GivenTaskFilter & { queue: string },
): Promise<QueueSchema<'TaskCount'>> {
  const faults: FieldError[] = [];
  const filter = taskFilter(given, '', faults);
  if (faults.length > 0) throw failQuery(faults);
  await requireQueue(context, queue);
  const { count, isEstimate } = await context.store.countTasks({ queue, filter });
  return { count, is_estimate: isEstimate };
}

export interface GivenTaskFilter {
  status?: readonly QueueSchema<'TaskStatus'>[];
  handler_ref?: string;
  group_key?: string;
  flow_id?: string;
  from?: string;
  to?: string;
}

/** Reads a filter for tasks. `at` is the filter's location in the request. */
export function taskFilter(given: GivenTaskFilter, at: string, faults: FieldError[]): TaskFilter {
  const { status, handler_ref, group_key, flow_id, from, to } = given;
  return {
    // In a fixed order, so that a cursor does not depend on the order in the request.
    statuses: status && [...new Set(status)].toSorted(),
    handlerRef: handler_ref,
    groupKey: group_key,
    flowId: flow_id?.toUpperCase(),
    createdFrom: from === undefined ? undefined : timeIn(from, `${at}/from`, faults),
    createdBefore: to === undefined ? undefined : timeIn(to, `${at}/to`, faults),
  };
}

/** Changes the priority, the time or the payload of a pending task. */
export async function updateTask(
  context: QueueContext,
  caller: Principal,
  { id, body: given }: { id: string; body: unknown },
): Promise<Envelope> {
  const { clock, checks } = context;
  const found = await requireTask(context, caller, id, (task) =>
    requireGrant(caller, task.queue, 'operator'),
  );
  const body = checks.update.read(given);
  const { priority, run_at, payload: text, payload_content_type: type } = body;
  const now = clock.now();
  const faults: FieldError[] = [];
  const dueAt = run_at === undefined ? undefined : readRunAt(run_at, now, faults);
  const bytes = text === undefined ? undefined : readPayload(text, faults);
  if (bytes === undefined && type !== undefined) {
    faults.push({ pointer: '/payload_content_type', message: 'needs a payload' });
  }
  if (faults.length > 0) throw failBody('INVALID_TASK', faults);
  if (bytes) requirePayloadSize(bytes, found.queue);
  const contentType = type ?? found.task.payloadContentType;
  const payload = bytes && { bytes, contentType };
  // The audit log has no payloads.
  const { payload: _payload, ...shown } = body;
  const isReplaced = payload !== undefined && { payload: 'replaced' };
  const selector = { ids: [found.task.id], ...shown, ...isReplaced };
  return changePending(context, caller, found, {
    action: 'update',
    now,
    dueAt,
    priority,
    payload,
    selector,
  });
}

/** Makes a pending task due. */
export async function runTaskNow(
  context: QueueContext,
  caller: Principal,
  { id }: { id: string },
): Promise<Envelope> {
  const found = await requireTask(context, caller, id, (task) =>
    requireGrant(caller, task.queue, 'operator'),
  );
  const now = context.clock.now();
  const selector = { ids: [found.task.id] };
  // One that is due already keeps its place among the others.
  const dueAt = Math.min(found.task.dueAt ?? now, now);
  return changePending(context, caller, found, { action: 'run_now', now, dueAt, selector });
}

async function changePending(
  { store }: QueueContext,
  caller: Principal,
  { task, queue }: FoundTask,
  change: Omit<UpdateTaskChange, 'id' | 'by'>,
): Promise<Envelope> {
  const result = await store.updateTask({ ...change, id: task.id, by: caller.principal });
  if (result.kind === 'not_found') throw taskNotFound(task.id);
  if (result.kind === 'changed') return toEnvelope(result.task, queue);
  const { status, flow } = result.task;
  if (status === 'PENDING' && flow?.wait) {
    const what = flow.wait.kind === 'dependencies' ? 'its dependencies' : 'what suspended it';
    throw fail(
      'TASK_NOT_PENDING',
      `The task ${task.id} waits for ${what}; its time cannot change.`,
    );
  }
  const hint = status === 'DEAD' ? ' Redrive it to run it again.' : '';
  throw fail(
    'TASK_NOT_PENDING',
    `The task ${task.id} is ${status}; only a PENDING task can be changed.${hint}`,
  );
}

/** Cancels a task that has not ended: it becomes DEAD, and a running callback is aborted. */
export async function cancelTask(
  context: QueueContext,
  caller: Principal,
  { id, body: given }: { id: string; body: unknown },
): Promise<Envelope> {
  const { task, queue } = await requireTask(context, caller, id, (task) =>
    requireGrant(caller, task.queue, 'operator'),
  );
  const { reason, cascade = true } = context.checks.cancel.read(given ?? {});
  const cancelled = await cancelOne(context, caller, { task, queue }, reason);
  if (cascade) await cancelChildren(context, caller, [task.id], reason);
  return toEnvelope(cancelled, queue);
}

/** Children in any queue, level by level; a repeated call finds those that a crash left. */
async function cancelChildren(
  context: QueueContext,
  caller: Principal,
  ids: readonly string[],
  reason: string | undefined,
): Promise<void> {
  const { store } = context;
  let parents = ids;
  while (parents.length > 0) {
    const rows = await store.readFlowRows({ kinds: ['child'], ids: parents });
    const children = await store.readTasks(rows.map(({ key }) => key));
    for (const task of children) {
      const queue = isEnded(task.status) ? undefined : await store.getQueue(task.queue);
      if (queue) await cancelOne(context, caller, { task, queue }, reason, false);
    }
    parents = children.filter(({ flow }) => flow?.hasChildren).map(({ id }) => id);
  }
}

/** `mustBeOpen`: a task that has ended is refused, and else left as it is. */
async function cancelOne(
  context: QueueContext,
  caller: Principal,
  { task, queue }: { task: Task; queue: Queue },
  reason: string | undefined,
  mustBeOpen = true,
): Promise<Task> {
  const { store, clock, delivery, observer } = context;
  const message = cancelMessage(reason);
  const url = urlWithoutQuery(queue.config.callback.url);
  let leaseToken: string | undefined;
  const result = await store.cancelTask({
    id: task.id,
    now: clock.now(),
    by: caller.principal,
    message,
    selector: { ids: [task.id], ...(reason !== undefined && { reason }) },
    attempt: (claimed, now) => {
      leaseToken = claimed.lease.token;
      return attemptRecord(claimed, {
        outcome: 'FAILED',
        now,
        errorType: 'CANCELLED',
        message,
        url,
      });
    },
  });
  if (result.kind === 'not_found' && !mustBeOpen) return task;
  if (result.kind === 'not_found') throw taskNotFound(task.id);
  if (result.kind === 'refused' && mustBeOpen) {
    throw fail(
      'TASK_FINISHED',
      `The task ${task.id} is ${result.task.status}; only a task that has not ended can be ` +
        'cancelled.',
    );
  }
  if (result.kind === 'changed') {
    observer.cancelled(queue.name, 1);
    delivery.cancelled(queue.name, 1, leaseToken);
  }
  return result.task;
}

/** The message of a cancelled task's last error. */
export function cancelMessage(reason: string | undefined): string {
  return reason === undefined || reason === ''
    ? 'The task was cancelled.'
    : cutText(reason, maxMessageBytes);
}

const chunkSize = 500;
const maxRunMs = 25_000;

/** Cancels pending tasks, oldest first, in chunks of one commit each. */
export async function cancelTasks(
  context: QueueContext,
  caller: Principal,
  { queue, body: given }: { queue: string; body: unknown },
): Promise<QueueSchema<'SelectorResult'>> {
  const { store, clock, checks, delivery, observer } = context;
  await requireQueue(context, queue);
  const body = checks.cancelTasks.read(given);
  const filter = readFilter(body, clock.now());
  const ids = [...new Set(body.ids?.map((id) => id.toUpperCase()))];
  if (body.dry_run) return dryRun(context, queue, filter ?? ids);
  const cancel = async (chunk: readonly string[]) => {
    const cancelled = await store.cancelPending({
      queue,
      ids: chunk,
      now: clock.now(),
      by: caller.principal,
      message: cancelMessage(body.reason),
      selector: body,
    });
    if (cancelled.length > 0) {
      observer.cancelled(queue, cancelled.length);
      delivery.cancelled(queue, cancelled.length);
      await cancelChildren(context, caller, cancelled, body.reason);
    }
    return cancelled.length;
  };
  if (!filter) return { count: await cancel(ids) };
  const endsAt = clock.monotonic() + maxRunMs;
  let count = 0;
  let isFirst = true;
  for await (const chunk of chunks(context, queue, filter)) {
    // A call that finds nothing is audited too.
    if (chunk.ids.length > 0 || (isFirst && chunk.isLast)) {
      count += await cancel(chunk.ids);
      isFirst = false;
    }
    if (!chunk.isLast && clock.monotonic() >= endsAt) return { count, complete: false };
  }
  return { count };
}

/** Undefined: the tasks are selected by their ids. */
function readFilter(body: QueueSchema<'CancelSelector'>, now: number): TaskFilter | undefined {
  if (!body.filter) return undefined;
  const { status: _status, ...rest } = body.filter;
  const faults: FieldError[] = [];
  const filter = taskFilter({ ...rest, status: ['PENDING'] }, '/filter', faults);
  if (faults.length > 0) throw failBody('INVALID_SELECTOR', faults);
  // Tasks submitted later are not touched.
  return { ...filter, createdBefore: Math.min(filter.createdBefore ?? Infinity, now + 1) };
}

async function dryRun(
  context: QueueContext,
  queue: string,
  selected: TaskFilter | readonly string[],
): Promise<QueueSchema<'SelectorResult'>> {
  let count = 0;
  if ('length' in selected) {
    for (const id of selected) {
      const task = await context.store.getTask(id);
      if (task && task.queue === queue && task.status === 'PENDING') count++;
    }
    return { count };
  }
  const { clock } = context;
  const endsAt = clock.monotonic() + maxRunMs;
  for await (const { ids, isLast } of chunks(context, queue, selected)) {
    count += ids.length;
    if (!isLast && clock.monotonic() >= endsAt) return { count, complete: false };
  }
  return { count };
}

async function* chunks(
  { store }: QueueContext,
  queue: string,
  filter: TaskFilter,
): AsyncGenerator<{ ids: string[]; isLast: boolean }> {
  let after: TaskPosition | undefined;
  do {
    const page = await store.listTasks({ queue, filter, order: 'oldest', after, limit: chunkSize });
    after = page.next;
    yield { ids: page.tasks.map(({ id }) => id), isLast: after === undefined };
  } while (after);
}
