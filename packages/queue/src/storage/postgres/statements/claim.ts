import { tasksOf } from './columns.js';

/**
 * $1 queue, $2 limit, $3 most in flight, $4 now, $5 end of the leases, $6 node, $7 tokens,
 * $8 priorities from high to low and for each $9 the group whose turn was last, $10 and $11 due time
 * and id above which tasks without a group are looked for.
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
      FROM millrace.ledger WHERE queue_no = $1)`;

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
 * An array tells the planner that there are few. There may be more tokens than tasks. `beside` is
 * what else is to be done with `claimed`, `withGroups`: some may have one.
 */
export const claimPicked = ({ walk = '', beside = '', withGroups = true } = {}) => `claimed AS (
    UPDATE millrace.live l SET ${withGroups ? groupChanges : ''}attempt = l.attempt + 1,
      total_attempts = l.total_attempts + 1, updated_at = $4,
      lease_token = p.token, lease_expires_at = $5, lease_node = $6,
      lease_started_at = $4, lease_async = false
    FROM unnest(ARRAY(SELECT id FROM picked), ARRAY(SELECT due_at FROM picked), $7::text[])
      WITH ORDINALITY AS p(id, due_at, token, position)
    WHERE p.id IS NOT NULL AND l.id = p.id AND l.lease_token IS NULL
    RETURNING l.id, l.attempt, l.total_attempts, l.redrive_count, l.expires_at, l.last_error,
      l.attempts, l.priority, p.position, p.due_at AS was_due_at
  ), booked AS (
    INSERT INTO millrace.ledger (queue_no, pending, in_flight, dead)
    SELECT $1, -count(*), count(*), 0 FROM claimed HAVING count(*) > 0
  ), noted AS (
    INSERT INTO millrace.claims (lease_expires_at, ids)
    SELECT $5, array_agg(id) FROM claimed HAVING count(*) > 0
  )${beside && `, ${beside}`}
  SELECT c.id, c.position::integer, c.was_due_at, t.handler_ref, t.content_type,
    nullif(t.headers, '{}'), c.priority, t.group_key, t.created_at, t.submitted_by, c.expires_at,
    ${pastOf('c')}, t.payload${walk && ', w.walked, w.walked_to'}
  FROM ${walk && `${walk} w LEFT JOIN (`}claimed c ${tasksOf('c')}
    ${walk && ') ON true'}`;

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
    SELECT * FROM unnest($8::smallint[], $9::text[], $10::bigint[], $11::text[])
    WITH ORDINALITY AS p(priority, turn, floor_due, floor_id, place)
  )`;

/** Not past its expiry, and not made ready before the clock was set back. */
export const isDue = 'l.due_at <= $4 AND (l.expires_at IS NULL OR l.expires_at > $4)';

/**
 * Those in flight stay among the ready where they have no group, and are passed over: by the end of
 * the lease, which is nearer to the beginning of a row than its token.
 */
export const isReady = 'l.stage = 0 AND l.lease_expires_at IS NULL';
