import type { QueueSchema } from '@millrace/contract/queue';
import type { FieldError } from '@millrace/kit/errors';
import type { DeadChange, DeadFilter, DeadTaskPosition } from '../storage/port/task-store.js';
import { type Principal, type QueueContext, requireQueue } from './base/context.js';
import { defaultPageSize, staleCursor, type CursorScope } from './base/cursors.js';
import { timeIn, timeText, toWholeTask } from './base/bodies.js';
import { failBody, failQuery } from './base/refusal.js';

export interface ListDlqRequest {
  queue: string;
  error_type?: string;
  handler_ref?: string;
  from?: string;
  to?: string;
  limit?: number;
  cursor?: string;
}

const maxPageBytes = 8 * 2 ** 20;
const maxGroups = 1_000;
/** Groups of which one task is read. */
const maxSamples = 100;

/** One page of dead tasks, the newest death first. */
export async function listDlq(
  context: QueueContext,
  { queue: name, limit = defaultPageSize, cursor = '', ...given }: ListDlqRequest,
): Promise<QueueSchema<'DlqPage'>> {
  const { store, cursors } = context;
  const faults: FieldError[] = [];
  const filter = deadFilter(given, '', faults);
  if (faults.length > 0) throw failQuery(faults);
  const queue = await requireQueue(context, name);
  const scope: CursorScope = {
    list: 'dlq',
    filter: { queue: name, ...filter },
    incarnation: queue.incarnation,
  };
  const after = cursor === '' ? undefined : placeOf(cursors.open(scope, cursor));
  const page = await store.deadTasks({
    queue: name,
    filter,
    order: 'newest_first',
    after,
    limit,
    maxBytes: maxPageBytes,
  });
  return {
    tasks: page.tasks.map((task) => toWholeTask(task, queue)),
    next_cursor: page.next ? cursors.seal(scope, [page.next.deadAt, page.next.id]) : '',
  };
}

function placeOf(opened: readonly unknown[] | undefined): DeadTaskPosition {
  if (!opened) throw staleCursor();
  const [deadAt, id] = opened as [number, string];
  return { deadAt, id };
}

/** Dead tasks of a queue, grouped by kind of failure. */
export async function listDlqGroups(
  context: QueueContext,
  { queue }: { queue: string },
): Promise<QueueSchema<'DlqGroups'>> {
  await requireQueue(context, queue);
  const groups = await context.store.deadGroups({ queue, limit: maxGroups });
  const sampleIds = groups.slice(0, maxSamples).map(({ sampleId }) => sampleId);
  const samples = sampleIds.length > 0 ? await context.store.readTasks(sampleIds) : [];
  const messages = new Map(samples.map(({ id, lastError }) => [id, lastError?.message]));
  return {
    groups: groups.map((group) => ({
      error_type: group.errorType ?? 'INTERNAL',
      handler_ref: group.handlerRef,
      http_status: group.httpStatus,
      count: group.count,
      first_seen: timeText(group.firstSeenAt),
      last_seen: timeText(group.lastSeenAt),
      sample_id: group.sampleId,
      ...(messages.get(group.sampleId) && { sample_message: messages.get(group.sampleId)! }),
    })),
  };
}

export type DeadAction = 'redrive' | 'purge';

/** A redrive or purge as its body describes it. */
export interface DeadSelection {
  body: QueueSchema<'RedriveSelector'> | QueueSchema<'PurgeSelector'>;
  selector: Selector;
  /** Redrive: time between the starts of two tasks. */
  gapMs: number;
}

type Selector = { ids: readonly string[] } | { filter: DeadFilter; isWhole: boolean };
type Result = QueueSchema<'SelectorResult'>;

const defaultRate = 500;
const chunkSize = 1_000;
const maxRunMs = 25_000;
// Pages include payloads, which are not needed here, so their size is limited.
const pageBytes = 8 * 2 ** 20;

/** Requeues dead tasks, with their starts spread over time, or deletes them for good. */
export async function actOnDead(
  context: QueueContext,
  caller: Principal,
  { action, queue, body: given }: { action: DeadAction; queue: string; body: unknown },
): Promise<Result> {
  const { store, clock } = context;
  await requireQueue(context, queue);
  const { body, selector, gapMs } = readSelection(context, action, given);
  const startedAt = clock.now();
  const flow = action === 'redrive' ? flowOf(body) : {};
  const change = {
    action,
    queue,
    diedBy: startedAt,
    by: caller.principal,
    selector: body,
    ...flow,
  };
  let dependents = 0;
  if (flow.fromStep) await requireStep(context, { queue, selector, startedAt }, flow.fromStep);
  const result = await walkDead(context, {
    queue,
    selector,
    startedAt,
    isDryRun: body.dry_run ?? false,
    act: async (ids, before) => {
      const dueAt = (index: number) => startedAt + Math.floor((before + index) * gapMs);
      const changed = await store.actOnDead({ ...change, ids, now: clock.now(), dueAt });
      if (changed.kind === 'done') dependents += changed.dependents;
      return changed.ids.length;
    },
  });
  return dependents > 0 ? { ...result, dependents } : result;
}

/** What a redrive does to flows. */
export function flowOf(
  body: QueueSchema<'RedriveSelector'>,
): Pick<DeadChange, 'withDependents' | 'fromStep'> {
  const { with_dependents: withDependents, from_step: fromStep, reset_steps: reset } = body;
  return { withDependents, fromStep: reset ? null : fromStep };
}

/** Refuses a step that none of the first selected tasks has recorded. */
export async function requireStep(
  context: QueueContext,
  walk: Pick<DeadWalk, 'queue' | 'selector' | 'startedAt'>,
  step: string,
): Promise<void> {
  const { store } = context;
  for await (const { ids } of idChunks(context, walk, () => true)) {
    const keys = [step];
    const found = await store.readFlowRows({ kinds: ['step'], ids, keys });
    if (found.length > 0 || ids.length === 0) return;
    break;
  }
  const message = `names the step ${step}, which no selected task has recorded`;
  throw failBody('INVALID_SELECTOR', [{ pointer: '/from_step', message }]);
}

export function readSelection(
  { checks }: QueueContext,
  action: DeadAction,
  given: unknown,
): DeadSelection {
  if (action === 'purge') {
    const body = checks.purge.read(given);
    return { body, selector: readSelector(body), gapMs: 0 };
  }
  const body = checks.redrive.read(given);
  if (body.from_step !== undefined && body.reset_steps) {
    const message = 'cannot be given together with reset_steps';
    throw failBody('INVALID_SELECTOR', [{ pointer: '/from_step', message }]);
  }
  const { rate_per_second: perSecond = defaultRate } = body;
  return { body, selector: readSelector(body), gapMs: perSecond === 0 ? 0 : 1000 / perSecond };
}

function readSelector(body: DeadSelection['body']): Selector {
  if (body.ids) return { ids: [...new Set(body.ids.map((id) => id.toUpperCase()))] };
  const faults: FieldError[] = [];
  const given = body.filter!;
  const filter = deadFilter(given, '/filter', faults);
  if (faults.length > 0) throw failBody('INVALID_SELECTOR', faults);
  return { filter, isWhole: Object.keys(given).length === 0 };
}

/** `at` is the filter's location in the request. */
function deadFilter(
  given: QueueSchema<'SelectorFilter'>,
  at: string,
  faults: FieldError[],
): DeadFilter {
  const { error_type, handler_ref, http_status, from, to } = given;
  return {
    errorType: error_type,
    handlerRef: handler_ref,
    httpStatus: http_status,
    diedFrom: from === undefined ? undefined : timeIn(from, `${at}/from`, faults),
    diedBefore: to === undefined ? undefined : timeIn(to, `${at}/to`, faults),
  };
}

interface DeadWalk {
  queue: string;
  selector: Selector;
  /** Start of the call: tasks that die later are not touched. */
  startedAt: number;
  isDryRun: boolean;
  /** Processes a chunk of tasks; `before` were processed already. Returns how many it changed. */
  act: (ids: readonly string[], before: number) => Promise<number>;
}

/**
 * Processes the selected tasks, oldest death first, in chunks of one commit each. Stops at the
 * time limit and then reports that there are more.
 */
async function walkDead(context: QueueContext, walk: DeadWalk): Promise<Result> {
  const { clock, store } = context;
  const endsAt = clock.monotonic() + maxRunMs;
  const isTimeUp = () => clock.monotonic() >= endsAt;
  const { queue, selector, isDryRun } = walk;
  if (isDryRun && 'ids' in selector) return countDead(context, walk, selector.ids, isTimeUp);
  if (isDryRun && 'isWhole' in selector && selector.isWhole) {
    return { count: (await store.counts(queue)).dead };
  }
  const act = isDryRun ? (ids: readonly string[]) => Promise.resolve(ids.length) : walk.act;
  let count = 0;
  for await (const { ids, isLast } of idChunks(context, walk, isTimeUp)) {
    count += await act(ids, count);
    if (!isLast && isTimeUp()) return { count, complete: false };
  }
  return { count };
}

async function countDead(
  { store }: QueueContext,
  { queue, startedAt }: DeadWalk,
  ids: readonly string[],
  isTimeUp: () => boolean,
): Promise<Result> {
  let count = 0;
  for (const id of ids) {
    if (isTimeUp()) return { count, complete: false };
    const task = await store.getTask(id);
    if (!task || 'purgedAt' in task || task.queue !== queue) continue;
    if (task.status === 'DEAD' && task.deadAt! <= startedAt) count++;
  }
  return { count };
}

interface Chunk {
  ids: readonly string[];
  isLast: boolean;
}

/** At least one chunk, even an empty one: a call that finds nothing is audited too. */
async function* idChunks(
  { store }: QueueContext,
  { queue, selector, startedAt }: Pick<DeadWalk, 'queue' | 'selector' | 'startedAt'>,
  isTimeUp: () => boolean,
): AsyncGenerator<Chunk> {
  if ('ids' in selector) {
    yield { ids: selector.ids, isLast: true };
    return;
  }
  const end = startedAt + 1;
  const diedBefore = Math.min(selector.filter.diedBefore ?? end, end);
  const query = { queue, filter: { ...selector.filter, diedBefore }, maxBytes: pageBytes };
  let after: DeadTaskPosition | undefined;
  let ids: string[] = [];
  do {
    const limit = chunkSize - ids.length;
    const page = await store.deadTasks({ ...query, order: 'oldest_first', after, limit });
    for (const { id } of page.tasks) ids.push(id);
    after = page.next;
    if (after && ids.length < chunkSize && !isTimeUp()) continue;
    yield { ids, isLast: after === undefined };
    ids = [];
  } while (after);
}
