import type { QueueSchema } from '@millrace/contract/queue';
import type { FieldError } from '@millrace/kit/errors';
import { maxStepBytes, type Suspension } from '../core/flow.js';
import { maxMessageBytes } from '../core/outcome.js';
import type { Queue } from '../core/queue.js';
import { maxResultBytes } from '../core/result.js';
import type { ReportResult, TaskReport } from '../delivery/index.js';
import type { NewStep } from '../storage/port/task-store.js';
import { type Envelope, timeIn, toEnvelope } from './base/bodies.js';
import {
  type Principal,
  type QueueContext,
  requireQueue,
  requireTask,
  taskNotFound,
} from './base/context.js';
import { fail, failBody } from './base/refusal.js';
import { rejected } from './submit.js';

export interface SettleRequest {
  id: string;
  leaseToken: string;
  body: unknown;
}

/** Finds the task of a handler's report, settles it, and returns it. */
export async function settleTask(
  context: QueueContext,
  caller: Principal,
  { id }: SettleRequest,
  settle: (id: string, queue: Queue) => Promise<ReportResult>,
): Promise<Envelope> {
  // Workers and push handlers, which are submitters, settle tasks: any grant will do.
  const { task, queue } = await requireTask(context, caller, id);
  const settled = await settle(task.id, queue);
  if (settled === 'not_found') throw taskNotFound(id);
  if (settled === 'cancelled' || settled === 'lease_lost') throw leaseLost(task.id, settled);
  if (typeof settled === 'string') throw stepsRefused(task.id, settled, queue);
  return toEnvelope(settled, queue);
}

export function leaseLost(id: string, how: 'cancelled' | 'lease_lost'): Error {
  if (how === 'cancelled') {
    const detail = `An operator cancelled the task ${id}. Stop the work.`;
    return fail('LEASE_LOST', detail, { members: { reason: 'CANCELLED' } });
  }
  return fail(
    'LEASE_LOST',
    `The token does not hold the lease of task ${id}: it ran out, was settled otherwise ` +
      'or belongs to another attempt. Stop the work.',
  );
}

type Item = QueueSchema<'SettleItem'>;
type ItemResult = QueueSchema<'SettleItemResult'>;

/** Settles many tasks of a queue; a result for each, in order, also for malformed items. */
export async function settleTasks(
  context: QueueContext,
  { queue: name, body }: { queue: string; body: unknown },
): Promise<ItemResult[]> {
  const queue = context.delivery.knownQueue(name) ?? (await requireQueue(context, name));
  const { checks } = context;
  const { items } = checks.settle.read(body);
  const results: ItemResult[] = [];
  const reports: { index: number; id: string; report: TaskReport }[] = [];
  items.forEach((given, index) => {
    try {
      const item = checks.settleItem.read(given);
      reports.push({ index, id: item.id, report: toReport(item, maxStepsOf(queue)) });
    } catch (error) {
      results[index] = rejected(index, error);
    }
  });
  const settled = await context.delivery.settleAll(
    queue,
    reports.map(({ report }) => report),
  );
  reports.forEach(({ index, id }, i) => {
    results[index] = toItemResult(id, index, settled[i]!, queue);
  });
  return results;
}

function toReport(
  item: Item,
  maxSteps: number,
  code: 'INVALID_CLAIM' | 'INVALID_TASK' = 'INVALID_CLAIM',
): TaskReport {
  const { id, lease_token: token, outcome, result, suspend, steps: listed, ...failure } = item;
  const faults: FieldError[] = [];
  const steps = listed?.map((step, index) => readStep(step, `/steps/${index}`, faults));
  if (steps && outcome === 'fail') {
    faults.push({ pointer: '/steps', message: 'cannot be recorded by a failure' });
  }
  if (outcome === 'suspend' && !suspend) {
    faults.push({ pointer: '/suspend', message: 'is missing; say what the task waits for' });
  }
  if (outcome === 'suspend' && result !== undefined) {
    const message = 'cannot be kept by a task that is suspended; record it as a step';
    faults.push({ pointer: '/result', message });
  }
  if (outcome !== 'suspend' && suspend) {
    faults.push({ pointer: '/suspend', message: 'needs the outcome suspend' });
  }
  if (faults.length > 0) throw failBody(code, faults);
  const task = { id: id.toUpperCase(), token, steps, maxSteps };
  if (outcome === 'suspend') {
    return { ...task, outcome, suspension: readSuspension(suspend!, '/suspend') };
  }
  return outcome === 'complete'
    ? { ...task, outcome, result: resultText(result) }
    : { ...task, outcome, failure };
}

function toItemResult(id: string, index: number, result: ReportResult, queue: Queue): ItemResult {
  if (result === 'not_found') return rejected(index, taskNotFound(id));
  if (result === 'cancelled' || result === 'lease_lost') {
    return rejected(index, leaseLost(id, result));
  }
  if (typeof result === 'string') return rejected(index, stepsRefused(id, result, queue));
  return {
    index,
    status: 200,
    // A session does not send it.
    get envelope() {
      return toEnvelope(result, queue);
    },
  };
}

/** Completes an asynchronous task. */
export function completeTask(
  context: QueueContext,
  caller: Principal,
  request: SettleRequest,
): Promise<Envelope> {
  const token = (request.body as { lease_token?: unknown } | null | undefined)?.lease_token;
  if (!request.leaseToken && token === undefined) {
    const message = 'is missing; send it, or the header X-Queue-Lease-Token';
    throw failBody('INVALID_TASK', [{ pointer: '/lease_token', message }]);
  }
  return settleTask(context, caller, request, async (id, queue) => {
    const { lease_token: given, ...body } = context.checks.complete.read(request.body ?? {});
    const outcome = body.suspend ? 'suspend' : 'complete';
    const item = { ...body, id, outcome, lease_token: request.leaseToken || given! } as const;
    const report = toReport(item, maxStepsOf(queue), 'INVALID_TASK');
    const [result] = await context.delivery.settleAll(queue, [report]);
    return result!;
  });
}

export function readSuspension(given: QueueSchema<'Suspension'>, pointer: string): Suspension {
  const faults: FieldError[] = [];
  const until =
    given.until === undefined ? undefined : timeIn(given.until, `${pointer}/until`, faults);
  if (!given.until && !given.signals && !given.tasks) {
    faults.push({ pointer, message: 'must have at least one of until, signals and tasks' });
  }
  if (faults.length > 0) throw failBody('INVALID_TASK', faults);
  const tasks = given.tasks?.map((id) => id.toUpperCase());
  return { until, signals: given.signals, tasks, mode: given.mode ?? 'any' };
}

/** Of configs that were written before there were steps. */
const defaultMaxSteps = 1_000;

export function maxStepsOf({ config }: Queue): number {
  return config.limits.max_steps ?? defaultMaxSteps;
}

type StepsRefused = 'too_many_steps' | 'steps_too_large';

export function stepsRefused(id: string, why: StepsRefused, queue: Queue): Error {
  if (why === 'steps_too_large') {
    return fail('STEP_TOO_LARGE', `The steps of the task ${id} have more than 8 MiB.`);
  }
  const detail = `The task ${id} may have ${maxStepsOf(queue)} steps. Start a new task.`;
  return fail('TOO_MANY_STEPS', detail);
}

export function readStep(
  { name, result, error, started_at: startedAt, consumes = [] }: QueueSchema<'StepInput'>,
  pointer: string,
  faults: FieldError[],
): NewStep {
  const text = result === undefined ? undefined : JSON.stringify(result);
  const bytes = Buffer.byteLength(text ?? '');
  if (bytes > maxStepBytes) {
    const detail = `The result of the step ${name} has ${bytes} bytes; at most ${maxStepBytes}.`;
    throw fail('STEP_TOO_LARGE', detail);
  }
  const started =
    startedAt === undefined ? undefined : timeIn(startedAt, `${pointer}/started_at`, faults);
  return { name, result: text, error, startedAt: started, consumes };
}

/** JSON text; undefined if there is no result. */
export function resultText(result: unknown): string | undefined {
  if (result === undefined) return undefined;
  const text = JSON.stringify(result);
  const bytes = Buffer.byteLength(text);
  if (bytes <= maxResultBytes) return text;
  throw fail(
    'RESULT_TOO_LARGE',
    `The result has ${bytes} bytes; a task keeps at most ${maxResultBytes}. Store it elsewhere and ` +
      'return its address.',
  );
}

/**
 * Fails an attempt of an asynchronous task: it is retried by the queue's policy or dead-lettered.
 */
export function failTask(
  context: QueueContext,
  caller: Principal,
  request: SettleRequest,
): Promise<Envelope> {
  return settleTask(context, caller, request, (id) => {
    const body = context.checks.fail.read(request.body ?? {});
    return context.delivery.fail(id, request.leaseToken, body);
  });
}

/** Extends the lease of an asynchronous task. */
export function extendTask(
  context: QueueContext,
  caller: Principal,
  request: SettleRequest,
): Promise<Envelope> {
  return settleTask(context, caller, request, (id) => {
    const { extend_ms, progress } = context.checks.extend.read(request.body);
    const report = progress && readProgress(progress);
    return context.delivery.extend(id, request.leaseToken, extend_ms, report);
  });
}

function readProgress({ percent = null, message = null }: GivenProgress) {
  if (message !== null && Buffer.byteLength(message) > maxMessageBytes) {
    const fault = { pointer: '/progress/message', message: 'must have at most 1024 bytes' };
    throw failBody('INVALID_TASK', [fault]);
  }
  return { percent, message };
}

interface GivenProgress {
  percent?: number | null;
  message?: string | null;
}
