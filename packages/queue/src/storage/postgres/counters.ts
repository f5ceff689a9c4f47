import type { Log } from '@millrace/kit/log';
import type { Connections } from './connections.js';
import { never } from '../../core/flow.js';
import {
  groupedMark,
  isGrouped,
  isReady,
  lowWaterMarkOf,
  markStepMs,
  scheduledMark,
} from './low-water-marks.js';
import { statement } from './statement.js';

interface QueueCounters {
  /** Entries that this server added since its last fold. */
  added: number;
  /** The first entry that counts. */
  first: number;
  /** Later folds. */
  folds: readonly Fold[];
  /** Monotonic time of the next fold from entry 0 on. */
  wholeAt: number;
  isFolding: boolean;
}

interface Fold {
  /** The entry that it wrote. */
  entry: number;
  /** Its monotonic time. */
  at: number;
  /** Transactions that wrote during it are below this one; undefined: not known yet. */
  bound: number | undefined;
}

interface FoldColumns {
  entry: number;
  xmin: number;
  xmax: number;
}

const maxEntries = 64;
/** No transaction of a server takes longer; those of other programs may, and are not waited for. */
const maxCommitMs = 30_000;
const wholeIntervalMs = 30_000;
const restFactor = 100;

/**
 * The counts of a queue are the sum of its counter entries, of all servers. Every commit adds an
 * entry instead of updating a row, so commits do not wait for each other. This folds the entries
 * into one before they are many. Folded entries stay in the index until vacuum, so counting starts
 * after them. An entry that commits during a fold precedes the entry of the fold, so counting
 * starts at a fold only when the transactions that ran during it have ended, and a later fold has
 * included what they wrote. A fold holds the claim lock of the queue.
 */
export class Counters {
  readonly #queues = new Map<string, QueueCounters>();
  readonly #folding = new Set<Promise<void>>();

  constructor(
    private readonly connections: Pick<Connections, 'transact'>,
    private readonly monotonic: () => number,
    private readonly log: Log,
  ) {}

  /** This server added an entry for each of these queues. */
  added(queues: Iterable<string>): void {
    for (const queue of queues) {
      const counters = this.#countersOf(queue);
      if (++counters.added >= maxEntries) this.#fold(queue, counters);
    }
  }

  /** The entry at which to start counting. */
  firstEntry(queue: string): number {
    const counters = this.#countersOf(queue);
    if (this.monotonic() >= counters.wholeAt || this.#isFirstDue(counters))
      this.#fold(queue, counters);
    return counters.first;
  }

  async close(): Promise<void> {
    await Promise.all(this.#folding);
  }

  #countersOf(queue: string): QueueCounters {
    let counters = this.#queues.get(queue);
    if (!counters) {
      counters = { added: 0, first: 0, folds: [], wholeAt: -Infinity, isFolding: false };
      this.#queues.set(queue, counters);
    }
    return counters;
  }

  /** The third fold is the first that can tell where to start. */
  #isFirstDue({ first, folds }: QueueCounters): boolean {
    return first === 0 && folds.length > 0;
  }

  #fold(queue: string, counters: QueueCounters): void {
    if (counters.isFolding) return;
    counters.isFolding = true;
    counters.added = 0;
    const folding = this.#foldEntries(queue, counters)
      // The next fold includes these entries.
      .catch((error: unknown) => this.log.debug({ err: error }, 'failed to fold counters'))
      .finally(() => {
        counters.isFolding = false;
        this.#folding.delete(folding);
      });
    this.#folding.add(folding);
  }

  async #foldEntries(queue: string, counters: QueueCounters): Promise<void> {
    const startedAt = this.monotonic();
    const isWhole = startedAt >= counters.wholeAt;
    if (isWhole) counters.wholeAt = startedAt + wholeIntervalMs;
    const from = isWhole ? 0 : counters.first;
    const [row] = await this.connections.transact(async (transaction) => {
      const locked = transaction.query(lockForClaims, [[queue]]);
      const folded = transaction.queryLast<FoldColumns>(foldCounters, [queue, from]);
      const [, rows] = await Promise.all([locked, folded]);
      return rows;
    });
    const now = this.monotonic();
    if (isWhole) counters.wholeAt = now + Math.max(wholeIntervalMs, restFactor * (now - startedAt));
    if (!row) return;
    const folds = counters.folds.map((fold) => ({ ...fold, bound: fold.bound ?? row.xmax }));
    const hasEnded = ({ bound, at }: Fold) => bound! <= row.xmin || at <= startedAt - maxCommitMs;
    const gathered = folds.findLastIndex(hasEnded);
    if (gathered !== -1) counters.first = folds[gathered]!.entry;
    counters.folds = [
      ...folds.slice(gathered + 1),
      { entry: row.entry, at: now, bound: undefined },
    ];
  }
}

/** Delayed tasks are counted up to this many. */
const maxDelayed = 100_000;

/**
 * Counts of queue $1 from counter entry $2 on, the earliest due time of a pending task, and how many
 * are due after $3. The search for the first one starts at low-water marks; it raises that of groups.
 */
export const counts = statement(
  'counts',
  `WITH queue AS MATERIALIZED (
    SELECT q.no, ${lowWaterMarkOf('q.no', groupedMark)} AS mark
    FROM millrace.queues q WHERE q.name = $1
  ), grouped AS MATERIALIZED (
    SELECT l.due_at FROM queue q CROSS JOIN LATERAL (
      SELECT l.due_at FROM millrace.live l
      WHERE l.queue_no = q.no AND ${isGrouped} AND l.due_at >= q.mark AND l.due_at < ${never}
      ORDER BY l.due_at LIMIT 1
    ) l
  ), oldest AS MATERIALIZED (
    SELECT l.due_at FROM queue q JOIN millrace.low_water_marks p ON p.queue_no = q.no
    CROSS JOIN LATERAL (
      SELECT l.due_at FROM millrace.live l
      WHERE l.queue_no = q.no AND ${isReady} AND l.priority = p.priority AND l.group_key = ''
        AND l.due_at >= p.due_at ORDER BY l.due_at LIMIT 1
    ) l WHERE p.priority >= 0
    UNION ALL SELECT l.due_at FROM queue q CROSS JOIN LATERAL (
      SELECT l.due_at FROM millrace.live l
      WHERE l.queue_no = q.no AND l.stage = 1 AND l.due_at < ${never}
        AND l.due_at >= ${lowWaterMarkOf('q.no', scheduledMark)}
      ORDER BY l.due_at LIMIT 1
    ) l
    UNION ALL SELECT due_at FROM grouped
  ), raised AS (
    UPDATE millrace.low_water_marks f SET due_at = g.due_at - ${markStepMs} FROM queue q, grouped g
    WHERE f.queue_no = q.no AND f.priority = ${groupedMark} AND f.due_at = q.mark
      AND f.due_at + 2 * ${markStepMs} < g.due_at
  )
  SELECT coalesce(sum(b.pending), 0)::bigint AS pending,
    coalesce(sum(b.in_flight), 0)::bigint AS in_flight,
    coalesce(sum(b.dead), 0)::bigint AS dead,
    (SELECT min(due_at) FROM oldest) AS oldest_due_at,
    (SELECT count(*) FROM (SELECT 1 FROM queue q CROSS JOIN LATERAL (SELECT 1 FROM millrace.live l
      WHERE l.queue_no = q.no AND l.stage = 1 AND l.due_at > $3
      AND l.due_at < ${never} LIMIT ${maxDelayed}) d) c) AS delayed,
    (SELECT jsonb_object_agg(wait, n) FROM (SELECT l.wait, count(*) AS n FROM millrace.live l
      WHERE l.queue_no = (SELECT no FROM queue) AND l.wait IS NOT NULL GROUP BY 1) w) AS waits
  FROM millrace.counters b
  WHERE b.queue_no = (SELECT no FROM queue) AND b.entry >= $2`,
);

/**
 * Replaces the entries of a queue from $2 on by one, and returns which. New entries stay. `xmin`: all
 * transactions below it have ended; `xmax`: none from it on had begun to write.
 */
export const foldCounters = statement(
  'fold_counters',
  `WITH gone AS (
    DELETE FROM millrace.counters
    WHERE queue_no = (SELECT no FROM millrace.queues WHERE name = $1) AND entry >= $2
    RETURNING queue_no, pending, in_flight, dead
  )
  INSERT INTO millrace.counters (queue_no, pending, in_flight, dead)
  SELECT queue_no, sum(pending), sum(in_flight), sum(dead) FROM gone GROUP BY queue_no
  RETURNING entry, txid_snapshot_xmin(txid_current_snapshot()) AS xmin,
    txid_snapshot_xmax(txid_current_snapshot()) AS xmax`,
);

/** Takes the claim locks of queues, in the order of names: no deadlock. */
export const lockForClaims = statement(
  'lock_for_claims',
  `SELECT g.queue_no FROM millrace.queues q JOIN millrace.queue_locks g ON g.queue_no = q.no
  WHERE q.name = ANY($1::text[]) ORDER BY q.name FOR UPDATE OF g`,
);

/** $1 queues, $2 the first counter entry of each. */
export const pendingOf = statement(
  'pending_of',
  `SELECT q.name, coalesce((SELECT sum(b.pending) FROM millrace.counters b
    WHERE b.queue_no = q.no AND b.entry >= i.first_entry), 0)::bigint AS pending
  FROM unnest($1::text[], $2::bigint[]) AS i(name, first_entry)
    JOIN millrace.queues q ON q.name = i.name`,
);
