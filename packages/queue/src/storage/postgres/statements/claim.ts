import { byId, tasksOf } from './columns.js';

/**
 * $1 queue, $2 limit, $3 most in flight, $4 now, $5 end of the leases, $6 node, $7 tokens,
 * $8 priorities from high to low and for each $9 the group whose turn was last, and for tasks without
 * a group $10 the due time above which and $11 up to which to look; $12 the first entry of the ledger.
 *
 * `candidates` makes that table: priority, place in the list of priorities, group_key, turn_group,
 * id, due_at. With a `walk` there is a row also when nothing was claimed.
 */
export const claimFrom = (candidates: string, walk = '') => `WITH RECURSIVE ${candidates},
  ordered AS (
    SELECT id, group_key, due_at, place, turn_group, row_number() OVER (
      PARTITION BY place, group_key ORDER BY due_at, id) AS round
    FROM candidates
  ), picked AS MATERIALIZED (
    SELECT id, due_at
    FROM ordered
    ORDER BY place, round, turn_group, group_key
    LIMIT ${room}
  ), ${claimPicked({ walk })}`;

/** How many may be claimed. */
export const room = `(SELECT
      greatest(0, least($2::bigint, $3::bigint - coalesce(sum(in_flight), 0)::bigint))
      FROM millrace.ledger WHERE queue_no = $1 AND entry >= $12)`;

/**
 * A claim changes nothing that an index has: the row is written next to its old version and no index
 * hears of it. Only where a task has a group does the claim show in `stage`, because the order of
 * groups hangs on it.
 */
const groupChanges = `stage = CASE l.group_key WHEN '' THEN l.stage ELSE 2 END,
      due_at = CASE l.group_key WHEN '' THEN l.due_at END,
      started = l.started OR l.group_key <> '', `;

/**
 * Claims what was `picked`, in that order: each has the token of its position.
 *
 * An array tells the planner that there are few. There may be more tokens than tasks. With a `number`
 * the claim has it, and tells in one row what it has changed. `isPlain`: none has a group.
 */
export const claimPicked = ({ walk = '', isPlain = false, number = '' }) => `claimed AS (
    UPDATE millrace.live l SET ${isPlain ? '' : groupChanges}attempt = l.attempt + 1,
      total_attempts = l.total_attempts + 1, updated_at = $4,
      lease_token = p.token, lease_expires_at = $5, lease_node = $6,
      lease_started_at = $4, lease_async = false
    FROM unnest(ARRAY(SELECT id FROM picked), ARRAY(SELECT due_at FROM picked), $7::text[])
      WITH ORDINALITY AS p(id, due_at, token, position)
    WHERE p.id IS NOT NULL AND ${byId('l.id', 'p.id')} AND l.lease_token IS NULL
    RETURNING l.id, p.position, p.due_at AS was_due_at, l.priority, l.expires_at,
      ${pastOf('l')} AS past
  ), booked AS (
    INSERT INTO millrace.ledger (queue_no, pending, in_flight, dead)
    SELECT $1, -count(*), count(*), 0 FROM claimed HAVING count(*) > 0
  ), noted AS (
    INSERT INTO millrace.claims (lease_expires_at, ids${number && ', no'})
    SELECT $5, array_agg(id)${number && `, ${number}::bigint`} FROM claimed HAVING count(*) > 0
  )${isPlain ? `, ${turned}` : ''}
  ${number ? claimedLists : claimedRows(walk)}`;

const claimedRows = (walk: string) => `SELECT c.id, c.position::integer, c.was_due_at, c.priority,
    c.expires_at, c.past, t.handler_ref, t.content_type, nullif(t.headers, '{}'), t.created_at,
    t.submitted_by, t.payload, t.group_key${walk && ', w.walked, w.walked_to'}
  FROM ${walk && `${walk} w LEFT JOIN (`}claimed c ${tasksOf('c')}
    ${walk && ') ON true'}`;

/** As the insides of JSON arrays: a row for each is most of what it costs the driver. */
const claimedLists = `SELECT string_agg(c.id, ',') AS ids,
    string_agg(c.position::text, ',') AS positions, string_agg(c.was_due_at::text, ',') AS due_ats,
    string_agg(c.priority::text, ',') AS priorities,
    CASE WHEN count(c.expires_at) > 0
      THEN string_agg(coalesce(c.expires_at::text, 'null'), ',') END AS expire_ats,
    CASE WHEN count(c.past) > 0
      THEN string_agg(coalesce(to_json(c.past)::text, 'null'), ',') END AS pasts
  FROM claimed c`;

/** The tasks without a group had the last turn in each priority that was claimed from. */
const turned = `turned AS (
    UPDATE millrace.gates g SET turns = (g.turns::jsonb || had.turns)::text
    FROM (
      SELECT jsonb_object_agg(p.priority::text, '') AS turns
      FROM (SELECT DISTINCT priority FROM claimed) c JOIN lanes p ON p.priority = c.priority
      WHERE p.turn <> ''
    ) had
    WHERE g.queue_no = $1 AND had.turns IS NOT NULL
  )`;

/**
 * What came before, as JSON without its brackets; null for a task that is claimed for the first time,
 * as most are.
 */
const pastOf = (c: string) => `CASE WHEN ${c}.total_attempts > 1 OR ${c}.redrive_count > 0
      OR ${c}.attempts <> '{}' OR ${c}.last_error IS NOT NULL
    THEN concat(${c}.attempt, ',', ${c}.total_attempts, ',', ${c}.redrive_count, ',',
      coalesce(${c}.last_error, 'null'), ',', to_json(array_to_string(${c}.attempts, ',')))
    END`;

export const lanes = `lanes AS (
    SELECT * FROM unnest($8::smallint[], $9::text[], $10::bigint[], $11::bigint[])
    WITH ORDINALITY AS p(priority, turn, above, up_to, place)
  )`;

/**
 * Picks where no task with a group waits: nobody has to take turns, so by priority, then due time and
 * id. None unless `may`.
 */
export const pickPlain = (may: string) => `${lanes}, picked AS MATERIALIZED (
    SELECT r.id, r.due_at
    FROM lanes p CROSS JOIN LATERAL (
      SELECT l.id, l.due_at FROM millrace.live l
      WHERE l.queue_no = $1 AND ${isReady} AND l.priority = p.priority AND l.group_key = ''
        AND l.due_at > p.above AND l.due_at <= p.up_to AND ${isDue}
      ORDER BY l.due_at, l.id
      LIMIT $2
    ) r
    WHERE ${may}
    ORDER BY p.place, r.due_at, r.id
    LIMIT ${room}
  )`;

/** Not past its expiry, and not made ready before the clock was set back. */
export const isDue = 'l.due_at <= $4 AND (l.expires_at IS NULL OR l.expires_at > $4)';

/**
 * Those in flight stay among the ready where they have no group, and are passed over: by the end of
 * the lease, which is nearer to the beginning of a row than its token.
 */
export const isReady = 'l.stage = 0 AND l.lease_expires_at IS NULL';
