import type { Task } from '../../core/task.js';
import { settleRow, type TaskRow, toTask as toPlainTask } from '../port/store-parts.js';
import type { Settlement, SettleResult } from '../port/task-store.js';
import {
  bigintArray,
  integerArray,
  partsWithoutRepeats,
  smallintArray,
  textArray,
} from './batches.js';
import type { Connections, Queryable } from './connections.js';
import { recorded } from './events.js';
import { lowerMarks } from './low-water-marks.js';
import { byId, fixedColumns, liveColumns, statement, tasksOf } from './statement.js';
import {
  attemptText,
  findTasks,
  type FoundColumns,
  toTask,
  verdicts,
  wholeMs,
  withoutZeros,
} from './tasks.js';
import { flowEnds } from './flow.sql.js';
import { releaseKeys } from './inserts.js';

/** Settles claims in one commit; a result for each, in order. */
export async function settleAll(
  connections: Connections,
  claimed: ClaimedTasks,
  settlements: readonly Settlement[],
): Promise<SettleResult[]> {
  const parts = partsWithoutRepeats(settlements.map(withoutZerosIn), ({ id }) => id);
  if (parts.length === 1) return settlePart(connections, claimed, parts[0]!);
  return connections.transact(async (transaction) => {
    const results: SettleResult[] = [];
    for (const part of parts) results.push(...(await settlePart(transaction, claimed, part)));
    return results;
  });
}

/** Queues that may have work now, and those where only a slot of `max_in_flight` became free. */
export function settledQueues(results: readonly SettleResult[]) {
  const [all, work, freed] = [new Set<string>(), new Set<string>(), new Set<string>()];
  for (const { kind, task } of results) {
    if (kind !== 'settled') continue;
    all.add(task.queue);
    // The end of a task without a group makes no other one due.
    (task.dueAt !== null || task.groupKey !== null ? work : freed).add(task.queue);
  }
  return { all, work, freed };
}

async function settlePart(
  db: Queryable,
  claimed: ClaimedTasks,
  settlements: readonly Settlement[],
): Promise<SettleResult[]> {
  const { isSettled, inFlow, flowEnds } = await settleIds(db, settlements);
  claimed.flowEnds += flowEnds;
  const results: (SettleResult | undefined)[] = [];
  const unknown: Settlement[] = [];
  for (const settlement of settlements) {
    const { id } = settlement;
    // Its flow may have changed since the claim: a signal, a step, a child.
    const isKnown = isSettled(id) && !inFlow.has(id);
    const task = claimed.settled(settlement, isKnown);
    if (!task) unknown.push(settlement);
    results.push(task && { kind: 'settled', task });
  }
  if (unknown.length === 0) return results as SettleResult[];
  const found = await db.query<FoundColumns>(findTasks, [unknown.map(({ id }) => id)]);
  const rows = new Map(found.map((row) => [row.id, row]));
  return settlements.map(({ id, token }, i) => {
    const row = rows.get(id);
    if (results[i]) return results[i];
    const isShown = isSettled(id) && row && row.status !== null;
    return isShown ? { kind: 'settled', task: toTask(row) } : missedResult(row, token);
  });
}

export function missedResult(row: FoundColumns | undefined, token: string): SettleResult {
  if (!row || row.status === null) return { kind: 'lease_lost', task: undefined };
  const task = toTask(row);
  if (row.settled_token !== token) return { kind: 'lease_lost', task };
  return { kind: 'repeated', task, verdict: verdicts[row.settled_verdict!]! };
}

/** Settles, and returns whether the settlement of an id took effect, and for how many others wait. */
export async function settleIds(
  db: Queryable,
  settlements: readonly Settlement[],
): Promise<{ isSettled: (id: string) => boolean; inFlow: Set<string>; flowEnds: number }> {
  // All servers lock rows in the order of ids, so that there is no deadlock.
  const list = settlements.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const [row] = await db.query<SettledColumns>(settle, valuesOf(list));
  const { flow_ends: flowEnds } = row!;
  const inFlow = new Set(row!.in_flow?.split(','));
  if (row!.count === list.length) return { isSettled: () => true, inFlow, flowEnds };
  const settled = new Set(row!.settled?.split(','));
  return { isSettled: (id) => settled.has(id), inFlow, flowEnds };
}

interface SettledColumns {
  count: number;
  flow_ends: number;
  settled: string | null;
  in_flow: string | null;
}

function valuesOf(list: readonly Settlement[]): unknown[] {
  return [
    textArray(list.map(({ id }) => id)),
    textArray(list.map(({ token }) => token)),
    smallintArray(list.map(({ verdict }) => verdicts.indexOf(verdict.kind))),
    bigintArray(list.map(({ now }) => now)),
    bigintArray(list.map(({ verdict }) => ('dueAt' in verdict ? wholeMs(verdict.dueAt) : null))),
    textArray(list.map(({ verdict }) => ('reason' in verdict ? verdict.reason : null))),
    textArray(list.map(({ attempt }) => attemptText(attempt))),
    textArray(list.map(({ error }) => (error ? JSON.stringify(error) : null))),
    textArray(list.map(({ error }) => error?.errorType ?? null)),
    integerArray(list.map(({ error }) => error?.httpStatus ?? null)),
    textArray(list.map(resultText)),
    bigintArray(list.map(({ expiredBy }) => expiredBy ?? null)),
  ];
}

/** "" says that there was one, but too large. */
function resultText({ result, resultDropped }: Settlement): string | null {
  return resultDropped ? '' : (result ?? null);
}

function withoutZerosIn(settlement: Settlement): Settlement {
  const { token, error } = settlement;
  const isClean = !token.includes('\0') && !error?.message.includes('\0');
  if (isClean && !error?.errorType.includes('\0')) return settlement;
  const { message = '', errorType = '' } = error ?? {};
  return {
    ...settlement,
    token: withoutZeros(token),
    error: error && {
      ...error,
      message: withoutZeros(message),
      errorType: withoutZeros(errorType),
    },
  };
}

const maxTasks = 50_000;

/**
 * Tasks claimed by this server and not settled yet, by lease token. The result of a settlement is
 * computed from them, so the database need not return it.
 */
export class ClaimedTasks {
  readonly #tasks = new Map<string, Task>();
  /** Ends of tasks that others wait for, of which they are still to be notified. */
  flowEnds = 0;

  add(task: Task): void {
    if (!task.lease) return;
    this.#tasks.set(task.lease.token, task);
    if (this.#tasks.size <= maxTasks) return;
    const [oldest] = this.#tasks.keys();
    this.#tasks.delete(oldest!);
  }

  /** The task after its settlement; undefined if it was not claimed here, or is not known. */
  settled(settlement: Settlement, isKnown: boolean): Task | undefined {
    const claimed = this.#tasks.get(settlement.token);
    this.#tasks.delete(settlement.token);
    if (claimed?.id !== settlement.id || !isKnown) return undefined;
    const row = toPlainTask(claimed as TaskRow) as TaskRow;
    settleRow(row, settlement);
    if (row.dueAt !== null) row.dueAt = wholeMs(row.dueAt);
    return toPlainTask(row);
  }
}

/** The first attempt and the last 49. */
const history = (attempt: string) => `CASE WHEN cardinality(l.attempts) < 50 THEN l.attempts
    ELSE l.attempts[1:1] || l.attempts[3:] END || ARRAY[${attempt}]`;

/** An expiry that ends a lease must not meet one that was extended since. */
const isHeld = `l.lease_token = i.token
      AND (i.expired_by IS NULL OR l.lease_expires_at <= i.expired_by)`;

const error = (text: string) => `'error', ${text}::json`;
const isDeath = 'r.outcome = 4 AND r.dead_reason';

/** A failed attempt is an event of its own, also if it was the last. */
const settledEvents = [
  {
    type: 'failed',
    from: 'back',
    at: 'r.now',
    detail: `json_build_object(${error('r.error')}, 'nextAttemptAt', r.due_at)::text`,
    where: 'r.verdict = 1',
  },
  { type: 'succeeded', from: 'gone', at: 'r.ended_at', where: 'r.outcome = 3' },
  {
    type: 'failed',
    from: 'gone',
    at: 'r.ended_at',
    detail: `json_build_object(${error('r.last_error')})::text`,
    where: `${isDeath} <> 'CANCELLED'`,
  },
  {
    type: 'dead',
    from: 'gone',
    at: 'r.ended_at',
    detail: `json_build_object(${error('r.last_error')}, 'deadReason', r.dead_reason)::text`,
    where: `${isDeath} <> 'CANCELLED'`,
  },
  {
    type: 'cancelled',
    from: 'gone',
    at: 'r.ended_at',
    detail: `json_build_object(${error('r.last_error')})::text`,
    where: `${isDeath} = 'CANCELLED'`,
  },
] as const;

/**
 * Ends claims whose lease tokens are still valid. The ids must differ. Returns how many it ended, and
 * which if not all. $3: 0 succeeded, 1 retry, 2 dead, 3 handed back, 4 suspended. $11: JSON text, "" for a result
 * that was too large.
 */
export const settle = statement(
  'settle',
  `WITH input AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::smallint[], $4::bigint[], $5::bigint[],
      $6::text[], $7::text[], $8::text[], $9::text[], $10::integer[], $11::text[], $12::bigint[])
    AS i(id, token, verdict, now, due_at, reason, attempt, error, error_type, http_status, result,
      expired_by)
  ), back AS (
    UPDATE millrace.live l SET
      stage = CASE WHEN i.due_at <= i.now THEN 0 ELSE 1 END,
      started = i.verdict <> 4, due_at = i.due_at, updated_at = i.now,
      attempt = l.attempt - CASE WHEN i.verdict >= 3 THEN 1 ELSE 0 END,
      total_attempts = l.total_attempts - CASE WHEN i.verdict >= 3 THEN 1 ELSE 0 END,
      lease_token = NULL, lease_expires_at = NULL, lease_node = NULL, lease_started_at = NULL,
      lease_async = NULL,
      settled_token = i.token, settled_verdict = i.verdict,
      http_status = CASE WHEN i.error IS NULL THEN l.http_status ELSE i.http_status END,
      error_type = coalesce(i.error_type, l.error_type),
      last_error = coalesce(i.error, l.last_error),
      attempts = CASE i.verdict WHEN 4 THEN l.attempts ELSE ${history('i.attempt')} END
    FROM input i
    WHERE i.verdict IN (1, 3, 4) AND ${byId('l.id', 'i.id')} AND ${isHeld}
    RETURNING l.id, l.queue_no, l.stage, l.priority, l.group_key, l.due_at, l.created_at,
      l.attempt, l.flow, i.verdict, i.error, i.now
  ), gone AS (
    DELETE FROM millrace.live l USING input i
    WHERE i.verdict IN (0, 2) AND ${byId('l.id', 'i.id')} AND ${isHeld}
    RETURNING l.id, l.queue_no, i.now AS ended_at, l.expires_at, l.attempt, l.total_attempts,
      l.redrive_count, CASE i.verdict WHEN 0 THEN 3 ELSE 4 END AS outcome,
      i.verdict AS settled_verdict, i.token AS settled_token, i.reason AS dead_reason,
      CASE WHEN i.error IS NULL THEN l.http_status ELSE i.http_status END AS http_status,
      coalesce(i.error_type, l.error_type) AS error_type,
      coalesce(i.error, l.last_error) AS last_error, ${history('i.attempt')} AS attempts,
      l.progress, i.result, l.unique_key, l.unique_until, i.now + l.retain_ms AS retained_until,
      l.flow
  ), over AS (
    INSERT INTO millrace.ended (id, queue_no, ended_at, expires_at, attempt, total_attempts,
      redrive_count, outcome, http_status, settled_verdict, settled_token, dead_reason,
      handler_ref, error_type, last_error, attempts, progress, result, unique_key, unique_until,
      retained_until, flow)
    SELECT g.id, g.queue_no, g.ended_at, g.expires_at, g.attempt, g.total_attempts,
      g.redrive_count, g.outcome, g.http_status, g.settled_verdict, g.settled_token,
      g.dead_reason,
      CASE g.outcome WHEN 4 THEN (SELECT t.handler_ref FROM millrace.tasks t WHERE t.id = g.id)
        ELSE '' END,
      g.error_type, g.last_error, g.attempts, g.progress, g.result, g.unique_key,
      g.unique_until, g.retained_until, g.flow
    FROM gone g
  ), ${recorded(...settledEvents)}, ${releaseKeys('gone')}, ${flowEnds('g.outcome')},
    ${lowerMarks('back')}, counted AS (
    INSERT INTO millrace.counters (queue_no, pending, in_flight, dead)
    SELECT queue_no, sum(pending), -count(*), sum(dead) FROM (
      SELECT queue_no, 1 AS pending, 0 AS dead FROM back
      UNION ALL SELECT queue_no, 0, CASE outcome WHEN 4 THEN 1 ELSE 0 END FROM gone
    ) AS settled GROUP BY queue_no
  ), settled AS MATERIALIZED (
    SELECT id, flow FROM back UNION ALL SELECT id, flow FROM gone
  )
  SELECT count(*) AS count, string_agg(id, ',') FILTER (WHERE flow IS NOT NULL) AS in_flow,
    (SELECT count(*) FROM flow_noted) AS flow_ends,
    CASE WHEN count(*) < cardinality($1::text[]) THEN string_agg(id, ',') END AS settled
  FROM settled`,
);

/** $3: when it expires; $7: an expiry that may become earlier. */
export const extendLease = statement(
  'extend_lease',
  `WITH moved AS (
    UPDATE millrace.live SET
      lease_expires_at = CASE lease_expires_at WHEN $7 THEN $3
        ELSE greatest(lease_expires_at, $3) END,
      lease_async = $4, updated_at = $5,
      progress = coalesce($6, progress)
    WHERE id = $1 AND lease_token = $2
    RETURNING *
  ), ${recorded({
    type: 'progress',
    from: 'moved',
    at: '$5::bigint',
    detail: `json_build_object('progress', $6::json)::text`,
    where: '$6::text IS NOT NULL',
  })}, extended AS (
    INSERT INTO millrace.claims (lease_expires_at, ids)
    SELECT lease_expires_at, ARRAY[id] FROM moved
  )
  SELECT ${fixedColumns}, ${liveColumns('m')} FROM moved m ${tasksOf('m')}`,
);
