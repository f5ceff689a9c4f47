import { byId, listingStatement, statement } from './statement.js';
import { recorded } from './events.js';
import {
  isReady,
  lowerMarks,
  markSlackMs,
  markStepMs,
  scheduledMark,
  scheduledSlackMs,
} from './low-water-marks.js';

const maxPromoted = 4_096;
/** Maximum FIFO groups that one claim reads. The next claim continues after them. */
export const maxFifoGroups = 2_000;

/**
 * First of the two statements of a claim: takes the claim lock of queue $1, so that one claim of a
 * queue runs at a time over all servers, and makes scheduled tasks ready that are due by $2. It is
 * apart because a statement sees what was committed when it began: the second begins when the lock
 * is held, and sees everything that earlier claims committed.
 */
export const lockAndPromote = statement(
  'lock_and_promote',
  `WITH queue AS MATERIALIZED (
    SELECT q.no, (SELECT m.due_at FROM millrace.low_water_marks m
      WHERE m.queue_no = q.no AND m.priority = ${scheduledMark}) AS mark
    FROM millrace.queues q JOIN millrace.queue_locks k ON k.queue_no = q.no
    WHERE q.name = $1 FOR UPDATE OF k
  ), due AS MATERIALIZED (
    SELECT l.id FROM queue q CROSS JOIN LATERAL (
      SELECT l.id FROM millrace.live l
      WHERE l.queue_no = q.no AND l.stage = 1 AND l.due_at >= q.mark AND l.due_at <= $2
      ORDER BY l.due_at, l.id LIMIT ${maxPromoted}
    ) l
  ), promoted AS (
    UPDATE millrace.live l SET stage = 0 FROM unnest(ARRAY(SELECT id FROM due)) AS d(id)
    WHERE ${byId('l.id', 'd.id')} AND l.stage + 0 = 1
    RETURNING l.queue_no, l.stage, l.priority, l.group_key, l.due_at, l.created_at
  ), ${lowerMarks('promoted')}, raised AS (
    UPDATE millrace.low_water_marks m SET due_at = $2 - ${scheduledSlackMs} FROM queue q
    WHERE m.queue_no = q.no AND m.priority = ${scheduledMark}
      AND m.due_at + ${markStepMs} < $2 - ${scheduledSlackMs}
      AND (SELECT count(*) FROM due) < ${maxPromoted}
  )
  SELECT count(*) AS promoted FROM promoted`,
);

const readyIn = (of: string) =>
  `l.queue_no = ${of}.no AND ${isReady} AND l.priority = ${of}.priority`;

/** Not before its due time, not after its expiry, and for one of the handlers if some are named. */
const mayRun =
  'l.due_at <= $4 AND (l.expires_at IS NULL OR l.expires_at > $4) AND ($11::text[] IS NULL ' +
  'OR (SELECT t.handler_ref FROM millrace.tasks t WHERE t.id = l.id) = ANY($11)) AND ' +
  '($15::text[] IS NULL OR (SELECT t.handler_ref FROM millrace.tasks t WHERE t.id = l.id) <> ALL($15)) AND ' +
  '($17::text[] IS NULL OR l.labels IS NULL OR l.labels <@ $17)';

const inFifoGroup = (row: string, stage: string) =>
  `${row}.queue_no = f.no AND ${row}.stage ${stage} AND ${row}.group_key <> ''`;

/** Numbers the candidates of each group, over all priorities. */
const rankedInGroup = `SELECT c.*, row_number() OVER (PARTITION BY c.group_key
      ORDER BY c.priority DESC, c.round) AS place FROM (`;
const withinGroupLimit = `c) candidates WHERE group_key = '' OR place <= $18::bigint - (
      SELECT count(*) FROM millrace.live r, lock WHERE r.queue_no = lock.no AND r.stage = 2
      AND r.group_key <> '' AND r.group_key = candidates.group_key)`;

const windowMs = '1000 * ceil($8::double precision) / nullif($8, 0)';

/**
 * Claims tasks: higher priorities first, then groups round-robin, then due time and id. $1 queue,
 * $2 limit, $3 max in flight, $4 now, $5 end of the leases, $6 node, $7 tokens, $8 starts per
 * second (0: no limit), $9 FIFO groups, $10 first counter entry to add up, $11 handlers (null:
 * any), $12 and $13 expected incarnation and version of the queue (null: any), $14 now, as the rate
 * window counts it, $15 handlers to leave out (null: none), $16 how many more groups to visit,
 * because some of them may have nothing to claim, $17 labels (null: any), $18 how many tasks of a
 * group may be in flight (0: any number).
 *
 * - `room`: how many tasks the limits allow.
 * - `groups` and `fifo_groups` jump from group to group in the index; their first row is the group
 *   where the last claim ended. After the last group, `groups` goes on with the first one.
 * - `heads`: of a FIFO group only its head may run: the first task that waits for a retry, or else
 *   the first of all, and none while a task of the group is in flight.
 * - `round`: 1 for the first task of its group, 2 for the second.
 * - `claimed`: for a task without a group this changes no indexed column, so PostgreSQL makes it a
 *   HOT update. For one with a group the claim shows in `stage`.
 * - `marks`: all ready tasks below the last one were claimed too, unless handlers are named or a
 *   picked task was changed meanwhile, which its `tid` (its place in the table) shows.
 * - Tasks are read by one search for all ids. Other joins would search for each; a full join must
 *   read both sides once.
 *
 * Every row has the room. The only one has no id if nothing was claimed; then nothing changed that
 * must outlive a crash, so the commit waits for no disk. No row: the queue is paused, gone or not
 * the expected one.
 */
const claimText = (
  hasGroupLimit: boolean,
) => `WITH RECURSIVE lock AS MATERIALIZED (SELECT q.no, k.starts, k.fifo_position
    FROM millrace.queues q JOIN millrace.queue_locks k ON k.queue_no = q.no WHERE q.name = $1
      AND NOT q.paused AND ($12::text IS NULL OR q.incarnation = $12 AND q.version = $13)
  ), recent AS MATERIALIZED (SELECT (s->>0)::bigint AS at, (s->>1)::bigint AS count
    FROM lock CROSS JOIN LATERAL jsonb_array_elements(lock.starts::jsonb) AS s
    WHERE (s->>0)::bigint > $4::bigint - ${windowMs} AND (s->>0)::bigint <= $4 + ${windowMs}
  ), room AS MATERIALIZED (SELECT greatest(0, least($2::bigint, $3::bigint - (
      SELECT coalesce(sum(in_flight), 0) FROM millrace.counters WHERE queue_no = no AND entry >= $10),
      CASE WHEN $8 > 0 THEN ceil($8) - (SELECT coalesce(sum(count), 0) FROM recent) END
    ))::integer AS size FROM lock
  ), priorities AS MATERIALIZED (
    SELECT m.queue_no AS no, m.priority, m.due_at AS mark, m.last_group AS turn
    FROM lock JOIN millrace.low_water_marks m ON m.queue_no = lock.no
    WHERE m.priority >= 0 AND (SELECT size FROM room) > 0
  ), groups(no, priority, turn, group_key, visited) AS (
    SELECT no, priority, turn, turn, 0 FROM priorities WHERE NOT $9::boolean UNION ALL
    SELECT g.no, g.priority, g.turn, n.group_key, g.visited + 1 FROM groups g CROSS JOIN LATERAL (
      (SELECT l.group_key FROM millrace.live l WHERE ${readyIn('g')} AND l.group_key > g.group_key
        AND (g.group_key > g.turn OR g.visited = 0 OR l.group_key <= g.turn)
        ORDER BY l.group_key LIMIT 1) UNION ALL
      (SELECT l.group_key FROM millrace.live l WHERE ${readyIn('g')} AND l.group_key > ''
        AND l.group_key <= g.turn AND (g.group_key > g.turn OR g.visited = 0)
        ORDER BY l.group_key LIMIT 1) LIMIT 1) n WHERE g.visited < $2 + $16::bigint
  ), fifo_groups(no, group_key, visited) AS (
    SELECT no, fifo_position, 0 FROM lock WHERE $9 UNION ALL
    SELECT f.no, n.group_key, f.visited + 1 FROM fifo_groups f CROSS JOIN LATERAL (
      SELECT l.group_key FROM millrace.live l WHERE ${inFifoGroup('l', '< 2')}
        AND l.group_key > f.group_key ORDER BY l.group_key LIMIT 1
    ) n WHERE f.visited < ${maxFifoGroups}
  ), heads AS (SELECT h.* FROM fifo_groups f CROSS JOIN LATERAL (
      SELECT l.ctid AS tid, l.* FROM millrace.live l WHERE ${inFifoGroup('l', '< 2')}
        AND l.group_key = f.group_key ORDER BY l.started DESC, l.due_at, l.id LIMIT 1
    ) h WHERE f.visited > 0 AND NOT EXISTS (SELECT 1 FROM millrace.live r
      WHERE ${inFifoGroup('r', '= 2')} AND r.group_key = f.group_key)
  ), picked AS MATERIALIZED (SELECT * FROM (${hasGroupLimit ? rankedInGroup : ''}
      SELECT t.priority, t.turn, t.group_key, r.round, r.tid, r.due_at
      FROM (SELECT no, priority, turn, '' AS group_key, mark FROM priorities UNION ALL
      SELECT no, priority, turn, group_key, 0 FROM groups WHERE visited > 0) t CROSS JOIN LATERAL (
        SELECT l.ctid AS tid, l.due_at,
          row_number() OVER (ORDER BY l.due_at, l.id) AS round
        FROM millrace.live l WHERE ${readyIn('t')}
          AND l.group_key = t.group_key AND l.due_at >= t.mark AND ${mayRun}
        ORDER BY l.due_at, l.id LIMIT (SELECT size FROM room)) r UNION ALL
      SELECT p.priority, p.turn, l.group_key, 1, l.tid, l.due_at
      FROM heads l JOIN priorities p ON p.priority = l.priority WHERE l.stage = 0 AND ${mayRun}
    ) ${hasGroupLimit ? withinGroupLimit : 'candidates'} ORDER BY priority DESC, round,
      CASE WHEN group_key = '' THEN 1 WHEN group_key > turn THEN 0 ELSE 2 END, group_key LIMIT (SELECT size FROM room)
  ), claimed AS (
    UPDATE millrace.live l SET stage = CASE l.group_key WHEN '' THEN l.stage ELSE 2 END,
      due_at = CASE l.group_key WHEN '' THEN l.due_at END, started = l.started OR l.group_key <> '',
      attempt = l.attempt + 1, total_attempts = l.total_attempts + 1, updated_at = $4,
      lease_token = p.token, lease_expires_at = $5, lease_node = $6, lease_started_at = $4,
      lease_async = false, wait = NULL
    FROM unnest(ARRAY(SELECT tid FROM picked), ARRAY(SELECT due_at FROM picked),
      $7::text[]) WITH ORDINALITY AS p(tid, was_due_at, token, position)
    WHERE l.ctid = p.tid AND l.lease_token IS NULL
    RETURNING l.*, p.was_due_at, p.position
  ), ${recorded({ type: 'started', from: 'claimed', at: '$4::bigint' })},
  counted AS (INSERT INTO millrace.counters (queue_no, pending, in_flight, dead)
    SELECT queue_no, -count(*), count(*), 0 FROM claimed GROUP BY queue_no
  ), leased AS (INSERT INTO millrace.claims (lease_expires_at, ids)
    SELECT $5, array_agg(id) FROM claimed HAVING count(*) > 0
  ), marks AS (UPDATE millrace.low_water_marks m SET last_group = c.last_group, due_at = CASE
      WHEN m.due_at = p.mark AND m.due_at + ${markStepMs} < c.due_at THEN c.due_at ELSE m.due_at END
    FROM (SELECT priority, (array_agg(group_key ORDER BY position DESC))[1] AS last_group, CASE WHEN
      $11 IS NULL AND $15 IS NULL AND (SELECT count(*) FROM claimed) = (SELECT count(*) FROM picked)
        AND ($17::text[] IS NULL OR NOT EXISTS (SELECT 1
        FROM millrace.live x, lock WHERE x.queue_no = lock.no AND x.stage = 0
        AND x.labels IS NOT NULL)) THEN max(was_due_at) FILTER (WHERE group_key = '') - ${markSlackMs} END AS due_at
      FROM claimed GROUP BY priority) c JOIN priorities p ON p.priority = c.priority
    WHERE m.queue_no = p.no AND m.priority = p.priority
      AND (m.last_group <> c.last_group OR m.due_at + ${markStepMs} < c.due_at)
  ), written AS (UPDATE millrace.queue_locks k SET fifo_position = f.position, starts = CASE
      WHEN $8 = 0 OR c.count = 0 THEN k.starts ELSE (SELECT jsonb_agg(jsonb_build_array(at, count)
        ORDER BY at)::text FROM (SELECT least(at, $14::bigint) AS at, sum(count) AS count
        FROM (SELECT * FROM recent UNION ALL SELECT $14, c.count) s GROUP BY 1) AS sums) END
    FROM lock, (SELECT count(*) FROM claimed) c, (SELECT CASE WHEN count(*) > ${maxFifoGroups}
      THEN max(group_key) ELSE '' END AS position FROM fifo_groups) f
    WHERE k.queue_no = lock.no AND (k.fifo_position <> f.position OR $8 > 0 AND c.count > 0))
  SELECT room.size, c.position::integer, c.id, c.priority, nullif(c.group_key, ''), c.expires_at,
    c.attempt, c.total_attempts, c.redrive_count, c.last_error, array_to_string(c.attempts, ','),
    t.handler_ref, t.content_type, nullif(t.headers, '{}'), t.created_at, t.submitted_by, t.payload,
    t.options,
    c.flow,
    CASE WHEN c.id IS NULL THEN set_config('synchronous_commit', 'off', true) END
  FROM room LEFT JOIN (claimed c FULL JOIN (SELECT * FROM millrace.tasks
    WHERE id = ANY(ARRAY(SELECT id FROM claimed)) OFFSET 0) t ON t.id = c.id) ON true`;

export const claim = listingStatement('claim', claimText(false));
/** The same with `max_in_flight_per_group`. */
export const claimWithGroupLimit = listingStatement('claim_in_groups', claimText(true));
