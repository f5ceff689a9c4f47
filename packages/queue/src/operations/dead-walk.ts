import type { QueueSchema } from '@millrace/contract/queue';
import type { QueueContext } from './context.js';
import type { DeadFilter, DeadPlace } from '../storage/task-store.js';
import type { Selector } from './selector.js';

type Result = QueueSchema<'SelectorResult'>;

/** One redrive or purge of dead tasks. */
export interface DeadWalk {
  queue: string;
  selector: Selector;
  /** When the call came: what dies later is not touched. */
  startedAt: number;
  isDryRun: boolean;
  /** Acts on some of the tasks; `before` were acted on already. Returns how many there were. */
  act: (ids: readonly string[], before: number) => Promise<number>;
}

const chunkSize = 1_000;
const longestMs = 25_000;
// Tasks are read whole, with payloads that are not needed here: so much at a time.
const pageBytes = 8 * 2 ** 20;

/**
 * Acts on the selected tasks, the oldest death first, by id and in chunks, each of which is one
 * commit. Stops when the time is up, and says then that there are more.
 */
export async function walkDead(context: QueueContext, walk: DeadWalk): Promise<Result> {
  const { clock, store } = context;
  const endsAt = clock.monotonic() + longestMs;
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

/** At least one chunk, be it empty: a call that finds nothing is an act too, and is recorded. */
async function* idChunks(
  { store }: QueueContext,
  { queue, selector, startedAt }: DeadWalk,
  isTimeUp: () => boolean,
): AsyncGenerator<Chunk> {
  if ('ids' in selector) {
    yield { ids: selector.ids, isLast: true };
    return;
  }
  const filter = untilNow(selector.filter, startedAt);
  let after: DeadPlace | undefined;
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

function untilNow(filter: DeadFilter, startedAt: number): DeadFilter {
  const end = startedAt + 1;
  return { ...filter, diedBefore: Math.min(filter.diedBefore ?? end, end) };
}
