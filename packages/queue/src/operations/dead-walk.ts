import type { QueueSchema } from '@millrace/contract/queue';
import type { QueueContext } from './base/context.js';
import type { DeadFilter, DeadTaskPosition } from '../storage/port/task-store.js';
import type { Selector } from './selector.js';

type Result = QueueSchema<'SelectorResult'>;

/** One redrive or purge of dead tasks. */
export interface DeadWalk {
  queue: string;
  selector: Selector;
  /** Start of the call: tasks that die later are not touched. */
  startedAt: number;
  isDryRun: boolean;
  /** Processes a chunk of tasks; `before` were processed already. Returns how many it changed. */
  act: (ids: readonly string[], before: number) => Promise<number>;
}

const chunkSize = 1_000;
const maxRunMs = 25_000;
// Pages include payloads, which are not needed here, so their size is limited.
const pageBytes = 8 * 2 ** 20;

/**
 * Processes the selected tasks, oldest death first, in chunks of one commit each. Stops at the
 * time limit and then reports that there are more.
 */
export async function walkDead(context: QueueContext, walk: DeadWalk): Promise<Result> {
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
  { queue, selector, startedAt }: DeadWalk,
  isTimeUp: () => boolean,
): AsyncGenerator<Chunk> {
  if ('ids' in selector) {
    yield { ids: selector.ids, isLast: true };
    return;
  }
  const filter = diedUpTo(selector.filter, startedAt);
  let after: DeadTaskPosition | undefined;
  let ids: string[] = [];
  do {
    const limit = chunkSize - ids.length;
    const order = 'oldest_first';
    const page = await store.deadTasks({ queue, filter, order, after, limit, maxBytes: pageBytes });
    for (const { id } of page.tasks) ids.push(id);
    after = page.next;
    if (after && ids.length < chunkSize && !isTimeUp()) continue;
    yield { ids, isLast: after === undefined };
    ids = [];
  } while (after);
}

function diedUpTo(filter: DeadFilter, startedAt: number): DeadFilter {
  const end = startedAt + 1;
  return { ...filter, diedBefore: Math.min(filter.diedBefore ?? end, end) };
}
