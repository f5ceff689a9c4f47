import type { QueueSchema } from '@millrace/contract/queue';
import type { FieldError } from '@millrace/kit/errors';
import { flowWaitOf, type FlowWait, type StoredStep } from '../core/flow.js';
import type { Task } from '../core/task.js';
import { sendSignal as sendInStore } from '../storage/port/flow-run.js';
import { readRuns } from '../storage/port/flow-runs.js';
import { timeOrNull, timeText, toRun, toSignal, toStep } from './base/bodies.js';
import {
  type Principal,
  type QueueContext,
  hasGrant,
  requireGrant,
  requireQueue,
  requireTask,
  taskNotFound,
} from './base/context.js';
import { taskEnded } from './base/dependencies.js';
import { fail, failBody } from './base/refusal.js';
import { leaseLost, maxStepsOf, readStep, stepsRefused } from './settle.js';

/** Records what a handler has done, under the lease of its task. */
export async function recordSteps(
  context: QueueContext,
  caller: Principal,
  { id: given, body }: { id: string; body: unknown },
): Promise<QueueSchema<'StepRecords'>> {
  const { store, clock, checks, delivery } = context;
  const id = given.toUpperCase();
  const token = (body as { lease_token?: unknown } | null | undefined)?.lease_token;
  const held = typeof token === 'string' ? delivery.queueOfLease(id, token) : undefined;
  // Workers and push handlers record steps: any grant will do.
  const isKnown = held && hasGrant(caller, held.name);
  const queue = isKnown ? held : (await requireTask(context, caller, given)).queue;
  const request = checks.steps.read(body);
  const faults: FieldError[] = [];
  const listed = request.steps ?? [request as QueueSchema<'StepInput'>];
  const steps = listed.map((step, index) =>
    readStep(step, request.steps ? `/steps/${index}` : '', faults),
  );
  if (faults.length > 0) throw failBody('INVALID_TASK', faults);
  const maxSteps = maxStepsOf(queue);
  const now = clock.now();
  const records = { id, token: request.lease_token, now, steps, maxSteps };
  const result = await store.recordSteps(records);
  switch (result.kind) {
    case 'not_found':
      throw taskNotFound(given);
    case 'lease_lost': {
      const { task } = await requireTask(context, caller, given);
      throw leaseLost(id, task.deadReason === 'CANCELLED' ? 'cancelled' : 'lease_lost');
    }
    case 'too_many':
      throw stepsRefused(id, 'too_many_steps', queue);
    case 'too_large':
      throw stepsRefused(id, 'steps_too_large', queue);
    case 'done': {
      const recorded = result.steps.filter(({ isRecorded }) => isRecorded).length;
      delivery.stepsRecorded(queue.name, recorded);
      const shown = result.steps.map(({ step, isRecorded }) => {
        return { ...toStep(step), recorded: isRecorded };
      });
      return request.steps ? { steps: shown } : shown[0]!;
    }
  }
}

const maxSignalBytes = 64 * 1024;
const fullRetryAfterMs = 1_000;

type GivenSignal = QueueSchema<'SendSignalRequest'>;

/** Sends a signal to a task. */
export async function sendSignal(
  context: QueueContext,
  caller: Principal,
  { id, body }: { id: string; body: unknown },
): Promise<QueueSchema<'Signal'>> {
  const { task } = await requireTask(context, caller, id, ({ queue }) =>
    requireGrant(caller, queue, 'submitter'),
  );
  return send(context, task.id, context.checks.signal.read(body));
}

/** Sends a signal to the task that holds a unique key. */
export async function sendQueueSignal(
  context: QueueContext,
  { queue, body }: { queue: string; body: unknown },
): Promise<QueueSchema<'Signal'>> {
  const { store, clock, checks } = context;
  await requireQueue(context, queue);
  const { unique_key: key, ...signal } = checks.queueSignal.read(body);
  const id = await store.holderOf(queue, key, clock.now());
  if (id === undefined) {
    throw fail('TASK_NOT_FOUND', `No task of the queue ${queue} holds the unique key ${key}.`);
  }
  return send(context, id, signal);
}

async function send(
  { store, clock, random }: QueueContext,
  id: string,
  { name, payload, id: given }: GivenSignal,
): Promise<QueueSchema<'Signal'>> {
  const text = payload === undefined ? undefined : JSON.stringify(payload);
  if (Buffer.byteLength(text ?? '') > maxSignalBytes) {
    const message = `must have at most ${maxSignalBytes} bytes`;
    throw failBody('INVALID_TASK', [{ pointer: '/payload', message }]);
  }
  const now = clock.now();
  const signal = { id: given ?? random.ulid(now), name, payload: text };
  const result = await store.runFlow(() => sendInStore(id, signal, now), now);
  switch (result.kind) {
    case 'not_found':
      throw taskNotFound(id);
    case 'ended':
      throw taskEnded(id);
    case 'full': {
      const detail = `The task ${id} has 100 unread signals, as many as it may. Send it later.`;
      throw fail('SIGNALS_FULL', detail, { retryAfterMs: fullRetryAfterMs });
    }
    default:
      return toSignal(result.signal);
  }
}

/** The steps, signals and dependencies of a task. */
export async function getTaskRun(
  context: QueueContext,
  caller: Principal,
  { id, leaseToken }: { id: string; leaseToken: string | undefined },
): Promise<QueueSchema<'TaskRun'>> {
  const { task } = await requireTask(context, caller, id, ({ queue, lease }) => {
    const isHeld = lease?.token === leaseToken && (lease?.expiresAt ?? 0) > context.clock.now();
    if (!isHeld) requireGrant(caller, queue, 'submitter');
  });
  const run = (await readRuns(context.store, [task])).get(task.id);
  const wait = task.status === 'PENDING' ? task.flow?.wait : undefined;
  return { ...toRun(run ?? noRun), ...(wait && { wait: toWait(wait) }) };
}

const noRun = { steps: [], signals: [], dependencies: [], children: [], wokenBy: undefined };

function toWait({ kind, until, signals = [], mode }: FlowWait): QueueSchema<'TaskWait'> {
  return {
    kind,
    ...(until !== undefined && { until: timeText(until) }),
    ...(signals.length > 0 && { signals: [...signals] }),
    ...(mode && { mode }),
  };
}

type Node = QueueSchema<'TaskNode'>;
const maxNodes = 1_000;

/** A task with its children, level by level. */
export async function getTaskTree(
  context: QueueContext,
  caller: Principal,
  { id }: { id: string },
): Promise<QueueSchema<'TaskTree'>> {
  const { store } = context;
  const { task } = await requireTask(context, caller, id, ({ queue }) =>
    requireGrant(caller, queue, 'submitter'),
  );
  const root = toNode(task);
  const nodes = new Map<string, Node>([[task.id, root]]);
  let parents: readonly Task[] = [task];
  let truncated = false;
  while (parents.length > 0 && !truncated) {
    await addSteps(context, parents, nodes);
    const ids = parents.filter(({ flow }) => flow?.hasChildren).map((parent) => parent.id);
    const rows = ids.length > 0 ? await store.readFlowRows({ kinds: ['child'], ids }) : [];
    truncated = nodes.size + rows.length > maxNodes;
    const shown = rows.slice(0, maxNodes - nodes.size);
    const found = await store.readTasks(shown.map(({ key }) => key));
    const known = new Map(found.map((child) => [child.id, child]));
    const level: Task[] = [];
    for (const { id: parent, key } of shown) {
      const child = known.get(key);
      const isSeen = child && caller.grants.allows(child.queue, 'submitter');
      const node = isSeen ? toNode(child) : { id: key, hidden: true };
      // A child that was purged is not shown.
      if (child) nodes.get(parent)!.children!.push(node);
      nodes.set(key, node);
      if (isSeen) level.push(child);
    }
    parents = level;
  }
  return { root, truncated };
}

async function addSteps(
  { store }: QueueContext,
  tasks: readonly Task[],
  nodes: ReadonlyMap<string, Node>,
): Promise<void> {
  const ids = tasks.filter(({ flow }) => flow?.steps).map(({ id }) => id);
  const rows = ids.length > 0 ? await store.readFlowRows({ kinds: ['step'], ids }) : [];
  const steps = rows.map(({ id, value }) => ({ id, ...(JSON.parse(value) as StoredStep) }));
  for (const { id, name } of steps.toSorted((a, b) => a.number - b.number)) {
    nodes.get(id)!.steps!.push(name);
  }
}

export function toNode(task: Task): Node {
  const wait = flowWaitOf(task);
  return {
    id: task.id,
    queue: task.queue,
    handler_ref: task.handlerRef,
    status: task.status,
    ...(wait && { waiting_for: wait }),
    created_at: timeText(task.createdAt),
    ended_at: timeOrNull(task.completedAt ?? task.deadAt),
    steps: [],
    children: [],
  };
}
