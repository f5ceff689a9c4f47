import type { Log } from '@millrace/kit/log';
import type { Connections } from './connections.js';
import { statement } from './statement.js';

/** A queue has a low-water mark for each priority, and these two. */
export const scheduledMark = -1;
export const groupedMark = -2;

/** Commits that take less than this are found without a sweep. */
export const markSlackMs = 250;
/** A mark is written only when it moves by this much: each write leaves a dead row. */
export const markStepMs = 500;
export const scheduledSlackMs = 5_000;
/** Sorts after every group key: no group had a turn yet. */
export const noTurn = '\u{10FFFF}';

/** `l` waits to be claimed. A task in flight keeps stage 0 when it has no group. */
export const isReady = 'l.stage = 0 AND l.lease_expires_at IS NULL';
/** `l` is pending and has a group; `created_at >= 0` is a condition of the index. */
export const isGrouped = "l.stage < 2 AND l.group_key <> '' AND l.created_at >= 0";

/**
 * Lowers low-water marks to the tasks in `rows` (queue_no, stage, priority, group_key, due_at)
 * that became pending below them. Usually there are none, and nothing is written.
 */
export const lowerMarks = (rows: string) => `lowered AS (
    UPDATE millrace.low_water_marks f SET due_at = m.due_at
    FROM (
      SELECT queue_no, CASE stage WHEN 1 THEN ${scheduledMark} ELSE priority END AS priority,
        min(due_at) AS due_at
      FROM ${rows} WHERE stage = 1 OR group_key = '' GROUP BY 1, 2
      UNION ALL
      SELECT queue_no, ${groupedMark}, min(due_at) FROM ${rows} WHERE group_key <> '' GROUP BY 1
    ) m
    WHERE f.queue_no = m.queue_no AND f.priority = m.priority AND f.due_at > m.due_at
  )`;

/** One low-water mark of a queue, as a subquery. */
export const lowWaterMarkOf = (
  queueNo: string,
  mark: number,
) => `(SELECT f.due_at FROM millrace.low_water_marks f
      WHERE f.queue_no = ${queueNo} AND f.priority = ${mark})`;

/**
 * Finds the first pending task below each low-water mark of queue $1 and lowers the mark to it.
 * Reads everything below the marks, including dead rows.
 */
export const sweepMarks = statement(
  'sweep_marks',
  `WITH marks AS MATERIALIZED (
    SELECT f.queue_no, f.priority, f.due_at FROM millrace.low_water_marks f
    WHERE f.queue_no = (SELECT no FROM millrace.queues WHERE name = $1)
  ), found AS MATERIALIZED (
    SELECT p.queue_no, p.priority, r.due_at FROM marks p CROSS JOIN LATERAL (
      SELECT l.due_at FROM millrace.live l
      WHERE l.queue_no = p.queue_no AND ${isReady} AND l.priority = p.priority
        AND l.group_key = '' AND l.due_at < p.due_at
      ORDER BY l.due_at LIMIT 1
    ) r WHERE p.priority >= 0
    UNION ALL
    SELECT p.queue_no, p.priority, r.due_at FROM marks p CROSS JOIN LATERAL (
      SELECT l.due_at FROM millrace.live l
      WHERE l.queue_no = p.queue_no AND l.stage = 1 AND l.due_at < p.due_at
      ORDER BY l.due_at LIMIT 1
    ) r WHERE p.priority = ${scheduledMark}
    UNION ALL
    SELECT p.queue_no, p.priority, r.due_at FROM marks p CROSS JOIN LATERAL (
      SELECT l.due_at FROM millrace.live l
      WHERE l.queue_no = p.queue_no AND ${isGrouped} AND l.due_at < p.due_at
      ORDER BY l.due_at LIMIT 1
    ) r WHERE p.priority = ${groupedMark}
  )
  UPDATE millrace.low_water_marks f SET due_at = s.due_at FROM found s
  WHERE f.queue_no = s.queue_no AND f.priority = s.priority AND f.due_at > s.due_at
  RETURNING f.priority, f.due_at`,
);

interface QueueSweep {
  /** Monotonic time of the next sweep; Infinity while one runs. */
  nextAt: number;
  hasWarned: boolean;
}

const minIntervalMs = 1_000;
/** A sweep runs for at most a twentieth of the time. */
const sweepRestFactor = 20;
const maxSweepMs = 30_000;
const slowMs = 1_000;
const slowMessage =
  'dead rows slow down claims; a long transaction may hold them, see backend_xmin in ' +
  'pg_stat_activity and pg_replication_slots';

/**
 * Lowers low-water marks to tasks that became ready below them because their commit took long.
 * Runs beside the claims, which do not wait for it.
 */
export class LowWaterMarkSweeper {
  readonly #queues = new Map<string, QueueSweep>();
  readonly #running = new Set<Promise<void>>();

  constructor(
    private readonly connections: Pick<Connections, 'queryWithin'>,
    private readonly monotonic: () => number,
    private readonly log: Log,
  ) {}

  sweepIfDue(queue: string): void {
    let sweep = this.#queues.get(queue);
    if (!sweep) {
      sweep = { nextAt: -Infinity, hasWarned: false };
      this.#queues.set(queue, sweep);
    }
    if (this.monotonic() < sweep.nextAt) return;
    sweep.nextAt = Infinity;
    const running = this.#sweep(queue, sweep).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  forget(queue: string): void {
    this.#queues.delete(queue);
  }

  async close(): Promise<void> {
    await Promise.all(this.#running);
  }

  async #sweep(queue: string, sweep: QueueSweep): Promise<void> {
    const startedAt = this.monotonic();
    try {
      await this.connections.queryWithin(maxSweepMs, sweepMarks, [queue]);
    } catch (error) {
      this.log.debug({ err: error, queue }, 'low-water mark sweep failed');
    }
    const tookMs = this.monotonic() - startedAt;
    const isSlow = tookMs > slowMs;
    if (isSlow && !sweep.hasWarned) this.log.warn({ queue, took_ms: tookMs }, slowMessage);
    sweep.hasWarned = isSlow;
    sweep.nextAt = this.monotonic() + Math.max(minIntervalMs, sweepRestFactor * tookMs);
  }
}

/** Transactions that take longer to commit are found by the next whole scan. */
const slackMs = 10_000;
const wholeIntervalMs = 60_000;
const restFactor = 100;

/**
 * Where to start a scan over times. Everything before was handled, but stays in the index until
 * vacuum. Now and then a scan is whole: it starts at 0.
 */
export class LowWaterMark {
  #from = 0;
  #lowest = Infinity;
  /** Monotonic time of the next whole scan. */
  #wholeAt = -Infinity;

  constructor(private readonly monotonic: () => number) {}

  get from(): number {
    return this.#from;
  }

  /** Where the next scan starts, if it may be a whole one. */
  begin(): number {
    this.#lowest = Infinity;
    const now = this.monotonic();
    if (now < this.#wholeAt) return this.#from;
    this.#wholeAt = now + wholeIntervalMs;
    return 0;
  }

  /** The slower a whole scan was, the later the next one. */
  tookWhole(tookMs: number): void {
    this.#wholeAt = this.monotonic() + Math.max(wholeIntervalMs, restFactor * tookMs);
  }

  /** Everything up to this time was handled. */
  raise(upTo: number): void {
    this.#from = Math.max(0, Math.min(upTo - slackMs, this.#lowest));
  }

  /** There is something to handle at this time. */
  lower(at: number): void {
    this.#from = Math.min(this.#from, at);
    this.#lowest = Math.min(this.#lowest, at);
  }
}
