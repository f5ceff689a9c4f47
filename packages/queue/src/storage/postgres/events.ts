import {
  type EventDetail,
  type EventPage,
  type EventPosition,
  eventRetentionMs,
  eventsRecordedMs,
  eventTypes,
  maxEvents,
  renewEventsMs,
  type TaskEvent,
  type TaskEventType,
} from '../port/events.js';
import type { Clock, Timer } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { Connections } from './connections.js';
import { statement } from './statement.js';

const numberOf = (type: TaskEventType) => String(eventTypes.indexOf(type));

/**
 * The transaction in the position of an event: the newest one when its statement began. Its own may
 * be older than one that it sees, because a claim takes its lock before it looks for tasks.
 */
const transaction = 'greatest(txid_current(), txid_snapshot_xmax(txid_current_snapshot()) - 1)';

/** One kind of event in a statement: SQL expressions over the rows of `from`. */
interface EventSource {
  type: TaskEventType;
  from: string;
  at: string;
  attempt?: string;
  /** JSON text; absent: none. */
  detail?: string;
  where?: string;
}

/**
 * Part of a statement: records events of the tasks in some of its rows (queue_no, id), if somebody
 * reads events. They are part of the commit, so a change is never seen without its event.
 */
export const recorded = (...sources: readonly EventSource[]) => `noted AS (
    INSERT INTO millrace.events (xid, at, type, queue_no, id, attempt, detail)
    SELECT ${transaction}, e.at, e.type, e.queue_no, e.id, e.attempt, e.detail FROM (${sources
      .map(
        ({ type, from, at, attempt = 'r.attempt', detail = 'NULL::text', where = 'true' }, i) =>
          `SELECT ${i} AS source, ${at} AS at, ${numberOf(type)} AS type, r.queue_no, r.id,
            ${attempt} AS attempt, ${detail} AS detail FROM ${from} r WHERE ${where}`,
      )
      .join(' UNION ALL ')}) e
    WHERE e.at < (SELECT record_until FROM millrace.event_log) ORDER BY e.source
  )`;

/** $1 now, $2 the end of the recording, $3 renew it if it ends before this. */
const startRecording = statement(
  'start_events',
  `UPDATE millrace.event_log SET record_until = $2,
    floor = CASE WHEN record_until <= $1 THEN txid_current() ELSE floor END
  WHERE record_until < $3`,
);

const currentState = statement(
  'event_state',
  `SELECT floor, txid_snapshot_xmax(txid_current_snapshot()) AS next FROM millrace.event_log`,
);

/** A transaction that is still running may have written events before these. */
const isSettled = 'e.xid < txid_snapshot_xmin(txid_current_snapshot())';

/** Events after ($1, $2), at most $3: what a statement saw comes before what it did. */
const eventPage = statement(
  'event_page',
  `SELECT e.xid, e.no, e.at, e.type, q.name AS queue, e.id, coalesce(t.handler_ref, '') AS handler_ref,
    e.attempt, e.detail
  FROM (SELECT * FROM millrace.events e WHERE (e.xid, e.no) > ($1::bigint, $2::bigint)
    AND ${isSettled} ORDER BY e.xid, e.no LIMIT $3) e
  JOIN millrace.queues q ON q.no = e.queue_no LEFT JOIN millrace.tasks t ON t.id = e.id
  ORDER BY e.xid, e.no`,
);

/** $1 time, $2 type, $3 queue, $4 task, $5 attempt, $6 detail. */
const addEvent = statement(
  'add_event',
  `INSERT INTO millrace.events (xid, at, type, queue_no, id, attempt, detail)
  SELECT ${transaction}, $1::bigint, $2::smallint, q.no, $4, $5::integer, $6 FROM millrace.queues q
  WHERE q.name = $3 AND $1 < (SELECT record_until FROM millrace.event_log)`,
);

const newestEvent = statement(
  'newest_event',
  `SELECT e.xid, e.no FROM millrace.events e WHERE ${isSettled}
  ORDER BY e.xid DESC, e.no DESC LIMIT 1`,
);

/** Clocks of servers may differ, and a transaction takes a while. */
const trimSlackMs = 60_000;

/** Deletes whole transactions. $1: older events are not kept; $2: how many are, at most. */
const trimEvents = statement(
  'trim_events',
  `WITH cut AS MATERIALIZED (
    SELECT greatest((SELECT max(xid) FROM millrace.events WHERE at < $1),
      (SELECT xid FROM millrace.events ORDER BY xid DESC, no DESC OFFSET $2 LIMIT 1)) AS xid
  ), deleted AS (
    DELETE FROM millrace.events e USING cut WHERE e.xid <= cut.xid
  )
  UPDATE millrace.event_log l SET floor = cut.xid + 1 FROM cut WHERE l.floor <= cut.xid`,
);

interface EventColumns {
  xid: number;
  no: number;
  at: number;
  type: number;
  queue: string;
  id: string;
  handler_ref: string;
  attempt: number;
  detail: string | null;
}

const pollMs = 200;
/** After all events of a transaction. */
const lastNo = Number.MAX_SAFE_INTEGER;

/**
 * The event log of all servers on the database. A position is a transaction and a row: rows alone
 * are numbered before their transactions commit, and a reader would miss those that commit late. The
 * transaction that wrote a row is never after that of its position, so it has ended when that has.
 */
export class PostgresEvents {
  #newest = '';
  #timer: Timer | undefined;

  constructor(
    private readonly connections: Connections,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  async start(now: number): Promise<EventPosition> {
    const values = [now, now + eventsRecordedMs, now + renewEventsMs];
    await this.connections.query(startRecording, values);
    const [state] = await this.connections.query<{ next: number }>(currentState);
    return [state!.next - 1, lastNo];
  }

  async read({
    after,
    limit,
  }: {
    after: EventPosition;
    limit: number;
  }): Promise<EventPage | 'stale'> {
    const rows = await this.connections.query<EventColumns>(eventPage, [...after, limit]);
    // After the rows: those that are deleted meanwhile make the position stale.
    const [state] = await this.connections.query<{ floor: number; next: number }>(currentState);
    if (after[0] < state!.floor || after[0] >= state!.next) return 'stale';
    const events = rows.map((row) => ({
      event: toEvent(row),
      position: [row.xid, row.no] as const,
    }));
    return { events, next: events.at(-1)?.position ?? after };
  }

  async add({ at, type, queue, taskId, attempt, detail }: TaskEvent): Promise<void> {
    const values = [at, eventTypes.indexOf(type), queue, taskId, attempt, JSON.stringify(detail)];
    await this.connections.query(addEvent, values);
  }

  /** Calls `notify` when there are new events, also of other servers, while it is wanted. */
  watch(isWanted: () => boolean, notify: () => void): void {
    this.#timer ??= this.clock.after(pollMs, () => {
      void this.#hasNew()
        .then((isNew) => isNew && notify())
        .catch((error: unknown) => this.log.debug({ err: error }, 'failed to poll events'))
        .finally(() => {
          this.#timer = undefined;
          if (isWanted()) this.watch(isWanted, notify);
        });
    });
  }

  close(): void {
    this.#timer?.cancel();
  }

  /** Whether there are events that were not there at the last call. */
  async #hasNew(): Promise<boolean> {
    const [row] = await this.connections.query<{ xid: number; no: number }>(newestEvent);
    const newest = row ? `${row.xid} ${row.no}` : '';
    const isNew = newest !== this.#newest;
    this.#newest = newest;
    return isNew;
  }

  async trim(now: number): Promise<void> {
    await this.connections.query(trimEvents, [now - eventRetentionMs - trimSlackMs, maxEvents]);
  }
}

function toEvent(row: EventColumns) {
  const { at, queue, id: taskId, handler_ref: handlerRef, attempt } = row;
  const detail = row.detail === null ? {} : (JSON.parse(row.detail) as EventDetail);
  return { type: eventTypes[row.type]!, at, queue, taskId, handlerRef, attempt, detail };
}
