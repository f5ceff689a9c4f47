import { listingStatement, statement } from '../connection/statement.js';
import { byId } from '../statements/columns.js';
import {
  lowWaterMarkOf,
  markSlackMs,
  markStepMs,
  isReady,
  lowerMarks,
  raiseScheduledMark,
  scheduledMark,
} from '../statements/low-water-marks.sql.js';

const maxPromoted = 4_096;
/** Maximum FIFO groups that one claim reads. The next claim continues after them. */
const maxFifoGroups = 2_000;
/** Sorts after every group key: no group had a turn yet. */
const noTurn = '\u{10FFFF}';

/**
 * Second of the three statements of a claim: scheduled tasks that are due by $2 become ready. The
 * first takes the claim lock of the queue: one claim of a queue runs at a time, over all servers.
 * The next two start when the lock is held, so they see everything that earlier claims committed.
 */
export const promote = statement(
  'promote',
  `WITH queue AS (
    SELECT no FROM millrace.queues WHERE name = $1
  ), due AS (
    SELECT l.id FROM millrace.live l
    WHERE l.queue_no = (SELECT no FROM queue) AND l.stage = 1
      AND l.due_at >= ${lowWaterMarkOf('(SELECT no FROM queue)', scheduledMark)} AND l.due_at <= $2
    ORDER BY l.due_at, l.id LIMIT ${maxPromoted}
  ), promoted AS (
    UPDATE millrace.live l SET stage = 0 FROM unnest(ARRAY(SELECT id FROM due)) AS d(id)
    WHERE ${byId('l.id', 'd.id')} AND l.stage + 0 = 1
    RETURNING l.queue_no, l.stage, l.priority, l.group_key, l.due_at, l.created_at
  ), ${lowerMarks('promoted')},
  ${raiseScheduledMark('(SELECT no FROM queue)', `(SELECT count(*) FROM due) < ${maxPromoted}`)}
  SELECT count(*) AS promoted FROM promoted`,
);

/** Not before its due time, not after its expiry, and for one of the handlers if some are named. */
const mayRun = `l.due_at <= $4 AND (l.expires_at IS NULL OR l.expires_at > $4)
      AND ($11::text[] IS NULL OR (SELECT t.handler_ref FROM millrace.tasks t WHERE t.id = l.id)
        = ANY($11::text[]))`;

const readyIn = (mark: string) =>
  `l.queue_no = ${mark}.no AND ${isReady} AND l.priority = ${mark}.priority`;

const rateWindowMs = '1000 * ceil($8::double precision) / nullif($8, 0)';

/** How many tasks may be claimed: by the limit, by `max_in_flight` and by the rate. */
const room = `recent AS MATERIALIZED (
    SELECT (s->>0)::bigint AS at, (s->>1)::bigint AS count
    FROM claim_lock CROSS JOIN LATERAL jsonb_array_elements(claim_lock.starts) AS s
    WHERE (s->>0)::bigint > $4::bigint - ${rateWindowMs} AND (s->>0)::bigint <= $4 + ${rateWindowMs}
  ), room AS MATERIALIZED (
    SELECT greatest(0, least($2::bigint,
      $3::bigint - (SELECT coalesce(sum(b.in_flight), 0) FROM millrace.ledger b
        WHERE b.queue_no = claim_lock.no AND b.entry >= $10),
      CASE WHEN $8 > 0 THEN ceil($8) - (SELECT coalesce(sum(count), 0) FROM recent) END
    ))::bigint AS size
    FROM claim_lock
  )`;

/**
 * Groups with ready tasks, in turn from where the last turn of their priority ended. It jumps from
 * group to group in the index. `sweep` 0: groups after the last turn, 2: groups up to it; tasks
 * without a group have 1.
 */
const groupsInTurn = `groups(no, priority, turn, sweep, group_key, visited) AS (
    SELECT p.no, p.priority, p.turn, f.sweep, f.group_key, 1
    FROM priorities p CROSS JOIN LATERAL (
      (SELECT 0 AS sweep, l.group_key FROM millrace.live l
        WHERE ${readyIn('p')} AND l.group_key > p.turn
        ORDER BY l.group_key LIMIT 1)
      UNION ALL
      (SELECT 2, l.group_key FROM millrace.live l
        WHERE ${readyIn('p')} AND l.group_key > '' AND l.group_key <= p.turn
        ORDER BY l.group_key LIMIT 1)
      LIMIT 1
    ) f
    WHERE NOT $9::boolean
    UNION ALL
    SELECT t.no, t.priority, t.turn, f.sweep, f.group_key, t.visited + 1
    FROM groups t CROSS JOIN LATERAL (
      (SELECT t.sweep, l.group_key FROM millrace.live l
        WHERE ${readyIn('t')} AND l.group_key > t.group_key
          AND (t.sweep = 0 OR l.group_key <= t.turn)
        ORDER BY l.group_key LIMIT 1)
      UNION ALL
      (SELECT 2, l.group_key FROM millrace.live l
        WHERE t.sweep = 0 AND ${readyIn('t')} AND l.group_key > '' AND l.group_key <= t.turn
        ORDER BY l.group_key LIMIT 1)
      LIMIT 1
    ) f
    WHERE t.visited < $2
  )`;

/**
 * FIFO queues: of each group only its head may run. No head while a task of the group is in flight;
 * otherwise the first of those that wait for a retry, or else the first of all.
 */
const fifoHeads = `fifo_groups(no, group_key, visited) AS (
    SELECT claim_lock.no, f.group_key, 1
    FROM claim_lock CROSS JOIN LATERAL (
      SELECT l.group_key FROM millrace.live l
      WHERE l.queue_no = claim_lock.no AND l.stage < 2 AND l.group_key <> ''
        AND l.group_key > claim_lock.fifo_position
      ORDER BY l.group_key LIMIT 1
    ) f
    WHERE $9
    UNION ALL
    SELECT w.no, f.group_key, w.visited + 1
    FROM fifo_groups w CROSS JOIN LATERAL (
      SELECT l.group_key FROM millrace.live l
      WHERE l.queue_no = w.no AND l.stage < 2 AND l.group_key <> '' AND l.group_key > w.group_key
      ORDER BY l.group_key LIMIT 1
    ) f
    WHERE w.visited < ${maxFifoGroups}
  ), heads AS (
    SELECT h.id
    FROM fifo_groups w CROSS JOIN LATERAL (
      (SELECT l.id FROM millrace.live l
        WHERE l.queue_no = w.no AND l.stage < 2 AND l.started AND l.group_key <> ''
          AND l.group_key = w.group_key
        ORDER BY l.due_at, l.id LIMIT 1)
      UNION ALL
      (SELECT l.id FROM millrace.live l
        WHERE l.queue_no = w.no AND l.stage < 2 AND l.group_key <> '' AND l.group_key = w.group_key
        ORDER BY l.due_at, l.id LIMIT 1)
      LIMIT 1
    ) h
    WHERE NOT EXISTS (SELECT 1 FROM millrace.live r
      WHERE r.queue_no = w.no AND r.stage = 2 AND r.group_key <> '' AND r.group_key = w.group_key)
  )`;

/** `round`: 1 for the first task of its group, 2 for the second; the index has them in this order. */
const firstOf = (group: string, where: string) => `
      SELECT l.id, l.due_at, row_number() OVER (ORDER BY l.due_at, l.id) AS round
      FROM millrace.live l
      WHERE ${readyIn(group)} AND ${where} AND ${mayRun}
      ORDER BY l.due_at, l.id LIMIT (SELECT size FROM room)`;

const candidates = `candidates AS (
    SELECT p.priority, r.round, 1 AS sweep, '' AS group_key, r.id, r.due_at
    FROM priorities p CROSS JOIN LATERAL (
      ${firstOf('p', `l.group_key = '' AND l.due_at >= p.mark`)}
    ) r
    UNION ALL
    SELECT g.priority, r.round, g.sweep, g.group_key, r.id, r.due_at
    FROM groups g CROSS JOIN LATERAL (
      ${firstOf('g', 'l.group_key = g.group_key')}
    ) r
    UNION ALL
    SELECT p.priority, 1, CASE WHEN l.group_key > p.turn THEN 0 ELSE 2 END, l.group_key, l.id,
      l.due_at
    FROM heads h
    JOIN LATERAL (SELECT * FROM millrace.live WHERE id = h.id OFFSET 0) l ON true
    JOIN priorities p ON p.priority = l.priority
    WHERE l.stage = 0 AND ${mayRun}
  )`;

/** Null for a task that runs for the first time, as most do; else JSON without its brackets. */
const past = `CASE WHEN l.total_attempts > 1 OR l.redrive_count > 0 OR l.attempts <> '{}'
        OR l.last_error IS NOT NULL
      THEN concat(l.attempt, ',', l.total_attempts, ',', l.redrive_count, ',',
        coalesce(l.last_error, 'null'), ',', to_json(array_to_string(l.attempts, ',')))
      END`;

/**
 * Leases the picked tasks, each with the token at its position. For a task without a group this
 * changes no indexed column, so PostgreSQL makes it a HOT update. For one with a group the claim
 * shows in `stage`, because the order of groups depends on it.
 */
const claimed = `claimed AS (
    UPDATE millrace.live l SET
      stage = CASE l.group_key WHEN '' THEN l.stage ELSE 2 END,
      due_at = CASE l.group_key WHEN '' THEN l.due_at END,
      started = l.started OR l.group_key <> '',
      attempt = l.attempt + 1, total_attempts = l.total_attempts + 1, updated_at = $4,
      lease_token = p.token, lease_expires_at = $5, lease_node = $6, lease_started_at = $4,
      lease_async = false
    FROM unnest(ARRAY(SELECT id FROM picked), ARRAY(SELECT due_at FROM picked), $7::text[])
      WITH ORDINALITY AS p(id, due_at, token, position)
    WHERE p.id IS NOT NULL AND ${byId('l.id', 'p.id')} AND l.lease_token IS NULL
    RETURNING l.id, p.position, p.due_at AS was_due_at, l.priority, l.group_key, l.expires_at,
      ${past} AS past
  )`;

/** The last turn of each priority, the starts of the rate window, the position in FIFO groups. */
const lockRowUpdated = `next_lock AS MATERIALIZED (
    SELECT claim_lock.no,
      claim_lock.last_groups || coalesce((SELECT jsonb_object_agg(t.priority::text, t.group_key) FROM (
        SELECT DISTINCT ON (priority) priority, group_key FROM claimed
        ORDER BY priority, position DESC) t), '{}') AS last_groups,
      CASE WHEN $8 > 0 AND EXISTS (SELECT 1 FROM claimed) THEN (
        SELECT jsonb_agg(jsonb_build_array(s.at, s.count) ORDER BY s.at) FROM (
          SELECT least(at, moment.at) AS at, sum(count) AS count FROM (
            SELECT at, count FROM recent
            UNION ALL SELECT moment.at, (SELECT count(*) FROM claimed)
          ) AS starts GROUP BY 1) s
      ) ELSE claim_lock.starts END AS starts,
      CASE (SELECT count(*) FROM fifo_groups) WHEN ${maxFifoGroups}
        THEN (SELECT max(group_key) FROM fifo_groups) ELSE '' END AS fifo_position
    FROM claim_lock CROSS JOIN (SELECT (ceil($4 / 20.0) * 20)::bigint AS at) AS moment
  ), lock_written AS (
    UPDATE millrace.gates g SET last_groups = n.last_groups::text, starts = n.starts::text,
      fifo_position = n.fifo_position
    FROM next_lock n
    WHERE g.queue_no = n.no AND (g.last_groups::jsonb, g.starts::jsonb, g.fifo_position)
      IS DISTINCT FROM (n.last_groups, n.starts, n.fifo_position)
  )`;

/**
 * Everything ready below the last claimed task of a priority was claimed too, unless a handler
 * filter is set.
 */
const marksRaised = `marks_raised AS (
    UPDATE millrace.floors f SET due_at = c.due_at - ${markSlackMs}
    FROM (SELECT priority, max(was_due_at) AS due_at FROM claimed WHERE group_key = ''
      GROUP BY priority) c JOIN priorities p ON p.priority = c.priority
    WHERE $11::text[] IS NULL AND f.queue_no = p.no AND f.priority = p.priority
      AND f.due_at = p.mark AND f.due_at + ${markStepMs} < c.due_at - ${markSlackMs}
  )`;

/**
 * Third: claims tasks. Higher priorities first, then groups round-robin, then due time and id. $1
 * queue, $2 limit, $3 max in flight, $4 now, $5 end of the leases, $6 node, $7 tokens, $8 starts
 * per second (0: no limit), $9 FIFO groups, $10 first counter entry to add up, $11 handlers (null:
 * any), $12 and $13 the expected incarnation and version of the queue (null: any). The last row has
 * no id: its position is how many tasks the limits allowed; it is missing if the queue is paused,
 * gone or not the expected one. A claim that got nothing changes nothing that must outlive a crash,
 * so its commit waits for no disk.
 */
export const claim = listingStatement(
  'claim',
  `WITH RECURSIVE claim_lock AS MATERIALIZED (
    SELECT q.no, g.last_groups::jsonb AS last_groups, g.starts::jsonb AS starts, g.fifo_position
    FROM millrace.queues q JOIN millrace.gates g ON g.queue_no = q.no
    WHERE q.name = $1 AND NOT q.paused
      AND ($12::text IS NULL OR q.incarnation = $12 AND q.version = $13) FOR UPDATE OF g
  ), ${room}, priorities AS MATERIALIZED (
    SELECT claim_lock.no, f.priority, f.due_at AS mark,
      coalesce(claim_lock.last_groups->>(f.priority::text), '${noTurn}') AS turn
    FROM claim_lock JOIN millrace.floors f ON f.queue_no = claim_lock.no
    WHERE f.priority >= 0 AND (SELECT size FROM room) > 0
  ), ${groupsInTurn}, ${fifoHeads}, ${candidates}, picked AS MATERIALIZED (
    SELECT id, due_at FROM candidates
    ORDER BY priority DESC, round, sweep, group_key LIMIT (SELECT size FROM room)
  ), ${claimed}, counted AS (
    INSERT INTO millrace.ledger (queue_no, pending, in_flight, dead)
    SELECT (SELECT no FROM claim_lock), -count(*), count(*), 0 FROM claimed HAVING count(*) > 0
  ), lease_noted AS (
    INSERT INTO millrace.claims (lease_expires_at, ids)
    SELECT $5, array_agg(id) FROM claimed HAVING count(*) > 0
  ), ${lockRowUpdated}, ${marksRaised}
  SELECT id, position::integer, priority, nullif(group_key, ''), expires_at, past FROM claimed
  UNION ALL
  SELECT NULL, size::integer, NULL, NULL, NULL, CASE WHEN NOT EXISTS (SELECT 1 FROM claimed)
    THEN set_config('synchronous_commit', 'off', true) END
  FROM room`,
);

/** Immutable columns of the claimed tasks, read after the commit, when the claim lock is free. */
export const readClaimed = listingStatement(
  'read_claimed',
  `SELECT id, handler_ref, content_type, nullif(headers, '{}'), created_at, submitted_by, payload
  FROM millrace.tasks WHERE id = ANY($1::text[])`,
);
