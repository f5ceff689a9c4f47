import { never } from '../../core/flow.js';
import type { LastError, WholeTask } from '../../core/task.js';
import type { Connections } from './connections.js';
import { recorded } from './events.js';
import { isReady, LowWaterMark, lowWaterMarkOf, scheduledMark } from './low-water-marks.js';
import {
  byId,
  counted,
  endedColumns,
  fixedColumns,
  historyColumn,
  liveColumns,
  skippingStatement,
  type Statement,
  statement,
  tasksOf,
} from './statement.js';
import { type TaskColumns, toWholeTask, type WholeColumns } from './tasks.js';
import { flowEnds } from './flow.sql.js';
import { releaseKeys } from './inserts.js';

/** Claims read at a time: few when only the first held lease is wanted. */
const fewClaims = 16;
const manyClaims = 512;
const noEnd = Number.MAX_SAFE_INTEGER;

/** Finds expired leases, and when the next lease expires. */
export class Leases {
  readonly #mark: LowWaterMark;

  constructor(
    private readonly connections: Connections,
    private readonly monotonic: () => number,
  ) {
    this.#mark = new LowWaterMark(monotonic);
  }

  /** A lease of this server expires at this time. It is below the mark if a clock was set back. */
  taken(expiresAt: number): void {
    this.#mark.lower(expiresAt);
  }

  /** Tasks whose lease expired by `now`, the oldest first. */
  async ended({ now, limit }: { now: number; limit: number }): Promise<WholeTask[]> {
    const from = this.#mark.begin();
    const startedAt = this.monotonic();
    const heldUntil = await this.#firstHeld({ from, by: now, limit: manyClaims });
    if (from === 0) this.#mark.tookWhole(this.monotonic() - startedAt);
    this.#mark.raise(heldUntil ?? now);
    if (heldUntil === undefined) return [];
    const values = [now, limit, manyClaims, heldUntil];
    const found = await this.connections.query<WholeColumns>(endedLeases, values);
    return found.map(toWholeTask);
  }

  /** When the next lease expires. */
  nextEnd(): Promise<number | undefined> {
    return this.#firstHeld({ from: this.#mark.from, by: noEnd, limit: fewClaims });
  }

  async #firstHeld(request: {
    from: number;
    by: number;
    limit: number;
  }): Promise<number | undefined> {
    const { from, by, limit } = request;
    for (;;) {
      const [row] = await this.connections.query<{ seen: number; held_until: number | null }>(
        sweepClaims,
        [by, limit, from],
      );
      const { seen, held_until: heldUntil } = row!;
      if (heldUntil !== null) return heldUntil;
      if (seen < limit) return undefined;
    }
  }
}

/** A longer search for the next expiry is cancelled. */
const maxSearchMs = 500;
/** After that, tasks are expired at this interval, and the search is tried again later. */
const pollMs = 1_000;
const restMs = 20_000;

/** Expires pending tasks, and finds the time of the next expiry. */
export class Expiries {
  readonly #mark: LowWaterMark;
  /** Monotonic time of the next search. */
  #searchAt = -Infinity;
  #hasStarted = false;

  constructor(
    private readonly connections: Connections,
    private readonly monotonic: () => number,
    private readonly expireTasks: Statement,
  ) {
    this.#mark = new LowWaterMark(monotonic);
  }

  /** A pending task expires at this time. */
  notePending(expiresAt: number): void {
    this.#mark.lower(expiresAt);
  }

  async expire(request: { now: number; limit: number; error: LastError }): Promise<TaskColumns[]> {
    const { now, limit, error } = request;
    if (!this.#hasStarted) await this.#start(now);
    const { from } = this.#mark;
    const values = [now, limit, JSON.stringify(error), from];
    const found = await this.connections.query<TaskColumns>(this.expireTasks, values);
    if (found.length < limit) this.#mark.raise(now);
    return found;
  }

  /** If the first scan would take too long, it starts near now; a later whole search goes back. */
  async #start(now: number): Promise<void> {
    const first = await this.connections.queryWithin(maxSearchMs, nextExpiry, [0]);
    this.#hasStarted = true;
    if (!first) this.#mark.raise(now);
  }

  /** When the next pending task expires. */
  async next(now: number): Promise<number | undefined> {
    const startedAt = this.monotonic();
    if (startedAt < this.#searchAt) return now + pollMs;
    const from = this.#mark.begin();
    const rows = await this.connections.queryWithin<{ at: number }>(maxSearchMs, nextExpiry, [
      from,
    ]);
    if (from === 0) this.#mark.tookWhole(this.monotonic() - startedAt);
    if (!rows) {
      this.#searchAt = this.monotonic() + restMs;
      return now + pollMs;
    }
    const at = rows[0]?.at;
    if (at !== undefined) this.#mark.lower(at);
    return at;
  }
}

/**
 * Reads the claims whose leases expire first, from $3 to $1, at most $2, and deletes those of which no
 * lease is held any more. Extending a lease adds a row of its own.
 */
export const sweepClaims = statement(
  'sweep_claims',
  `WITH seen AS MATERIALIZED (
    SELECT c.lease_expires_at, c.no,
      EXISTS (SELECT 1 FROM millrace.live l
        WHERE l.id = ANY(c.ids) AND l.lease_token IS NOT NULL
          AND l.lease_expires_at = c.lease_expires_at) AS is_held
    FROM (
      SELECT * FROM millrace.claims WHERE lease_expires_at >= $3 AND lease_expires_at <= $1
      ORDER BY lease_expires_at, no LIMIT $2
    ) c
  ), deleted AS (
    DELETE FROM millrace.claims c USING seen s
    WHERE NOT s.is_held AND ${byId('c.lease_expires_at', 's.lease_expires_at')}
      AND ${byId('c.no', 's.no')}
  )
  SELECT count(*) AS seen, min(lease_expires_at) FILTER (WHERE is_held) AS held_until FROM seen`,
);

/** $1 now, $2 limit, $3 how many claims to read, $4 from which expiry on. */
export const endedLeases = statement(
  'ended_leases',
  `WITH past AS (
    SELECT * FROM millrace.live
    WHERE id = ANY(ARRAY(
      SELECT unnest(c.ids) FROM (
        SELECT ids FROM millrace.claims WHERE lease_expires_at >= $4 AND lease_expires_at <= $1
        ORDER BY lease_expires_at, no LIMIT $3
      ) c
    )) AND lease_token IS NOT NULL AND lease_expires_at <= $1
    ORDER BY lease_expires_at, id LIMIT $2
  )
  SELECT ${fixedColumns}, ${liveColumns('p')}, ${historyColumn('p')}, t.payload
  FROM past p ${tasksOf('p')}
  ORDER BY p.lease_expires_at, p.id`,
);

/** Part of a statement: the pending tasks in `gone`, deleted from `live`, end as dead. */
export const pendingEnded = (
  reason: 'CANCELLED' | 'EXPIRED' | 'DEPENDENCY_FAILED',
  { now, error, eventError = error }: { now: string; error: string; eventError?: string },
) => `over AS (
    INSERT INTO millrace.ended (id, queue_no, ended_at, expires_at, attempt, total_attempts,
      redrive_count, outcome, http_status, settled_verdict, settled_token, dead_reason,
      handler_ref, error_type, last_error, attempts, progress, unique_key, unique_until,
      retained_until, flow)
    SELECT g.id, g.queue_no, ${now}, g.expires_at, g.attempt, g.total_attempts, g.redrive_count, 4,
      NULL, g.settled_verdict, g.settled_token, '${reason}', t.handler_ref, '${reason}', ${error},
      g.attempts, g.progress, g.unique_key, g.unique_until, ${now} + g.retain_ms, g.flow
    FROM gone g ${tasksOf('g')}
    RETURNING *
  ), ${recorded({
    type: reason === 'CANCELLED' ? 'cancelled' : 'dead',
    from: 'gone',
    at: `${now}::bigint`,
    detail:
      reason === 'CANCELLED'
        ? `json_build_object('error', ${eventError}::json)::text`
        : `json_build_object('error', ${eventError}::json, 'deadReason', '${reason}')::text`,
  })}, ${releaseKeys('gone')}, ${flowEnds('4')}, ${counted('-count(*)', 'count(*)')}`;

/**
 * Several servers may run this at the same time: each takes other tasks.
 * $1 now, $2 limit, $3 error, $4 low-water mark.
 */
export const expireTasks = skippingStatement(
  'expire_tasks',
  `WITH past AS (
    SELECT id, expires_at FROM millrace.live
    WHERE stage < 2 AND expires_at IS NOT NULL AND expires_at >= $4 AND expires_at <= $1
      AND lease_token IS NULL
    ORDER BY expires_at, id LIMIT $2
    FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM millrace.live l USING unnest(ARRAY(SELECT id FROM past)) AS p(id)
    WHERE ${byId('l.id', 'p.id')} AND l.lease_token IS NULL RETURNING l.*
  ), ${pendingEnded('EXPIRED', { now: '$1', error: '$3' })}
  SELECT ${fixedColumns}, ${endedColumns('o')}
  FROM over o ${tasksOf('o')}
  ORDER BY o.expires_at, o.id`,
);

/**
 * When the next task of each queue is due that is not paused. Any ready task will do, so it is the
 * first that an index has.
 */
export const nextDue = statement(
  'next_due',
  `SELECT q.name, coalesce(r.due_at, g.due_at, s.due_at) AS due_at
  FROM millrace.queues q
  LEFT JOIN LATERAL (
    SELECT l.due_at FROM millrace.low_water_marks p CROSS JOIN LATERAL (
      SELECT l.due_at FROM millrace.live l
      WHERE l.queue_no = q.no AND ${isReady} AND l.priority = p.priority AND l.group_key = ''
        AND l.due_at >= p.due_at
      ORDER BY l.due_at LIMIT 1
    ) l
    WHERE p.queue_no = q.no AND p.priority >= 0 LIMIT 1
  ) r ON true
  LEFT JOIN LATERAL (
    SELECT l.due_at FROM millrace.live l
    WHERE l.queue_no = q.no AND l.stage < 2 AND l.stage + 0 = 0 AND l.group_key <> ''
    ORDER BY l.group_key LIMIT 1
  ) g ON r.due_at IS NULL
  LEFT JOIN LATERAL (
    SELECT l.due_at FROM millrace.live l
    WHERE l.queue_no = q.no AND l.stage = 1 AND l.due_at < ${never}
      AND l.due_at >= ${lowWaterMarkOf('q.no', scheduledMark)}
    ORDER BY l.due_at LIMIT 1
  ) s ON r.due_at IS NULL AND g.due_at IS NULL
  WHERE NOT q.paused AND coalesce(r.due_at, g.due_at, s.due_at) IS NOT NULL`,
);

/** The first expiry of a pending task at or after $1. */
export const nextExpiry = statement(
  'next_expiry',
  `SELECT expires_at AS at FROM millrace.live
  WHERE stage < 2 AND expires_at IS NOT NULL AND expires_at >= $1 AND lease_token IS NULL
  ORDER BY expires_at LIMIT 1`,
);
