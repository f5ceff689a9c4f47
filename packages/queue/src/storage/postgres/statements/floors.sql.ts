import { statement } from '../statement.js';

/** Values of `priority` in `floors` that stand for no priority. */
export const scheduledLane = -1;
export const createdLane = -2;

/** Commits that take less than this are found without a sweep. */
export const floorSlackMs = 250;
/** A floor is written again only when it moves by this much: each write is a dead row. */
export const floorStepMs = 500;
const scheduledSlackMs = 5_000;

/** `l` waits to be claimed. A task in flight keeps stage 0 when it has no group. */
export const isReady = 'l.stage = 0 AND l.lease_expires_at IS NULL';

/**
 * Lowers floors to the tasks in `rows` (queue_no, stage, priority, group_key, due_at, created_at)
 * that became pending below them. Most do not, and then nothing is written.
 */
export const lowerFloors = (rows: string) => `lowered AS (
    UPDATE millrace.floors f SET due_at = m.due_at
    FROM (
      SELECT queue_no, CASE stage WHEN 1 THEN ${scheduledLane} ELSE priority END AS priority,
        min(due_at) AS due_at
      FROM ${rows} WHERE stage = 1 OR group_key = '' GROUP BY 1, 2
      UNION ALL
      SELECT queue_no, ${createdLane}, min(created_at) FROM ${rows} GROUP BY 1
    ) m
    WHERE f.queue_no = m.queue_no AND f.priority = m.priority AND f.due_at > m.due_at
  )`;

/** The floor of one lane of a queue, inside a statement. */
export const floorOf = (queueNo: string, lane: number) => `(SELECT f.due_at FROM millrace.floors f
      WHERE f.queue_no = ${queueNo} AND f.priority = ${lane})`;

export const createFloors = statement(
  'create_floors',
  `INSERT INTO millrace.floors (queue_no, priority, due_at)
  SELECT $1, lane, 0 FROM generate_series(${createdLane}, 9) AS lane`,
);

/** Raises the floor of scheduled tasks after all that were due by $2 were promoted. */
export const raiseScheduledFloor = (queueNo: string, condition: string) => `raised AS (
    UPDATE millrace.floors f SET due_at = $2 - ${scheduledSlackMs}
    WHERE f.queue_no = ${queueNo} AND f.priority = ${scheduledLane}
      AND f.due_at + ${floorStepMs} < $2 - ${scheduledSlackMs} AND ${condition}
  )`;

/**
 * Finds the first pending task below each floor of queue $1 and lowers the floor to it. This reads
 * everything that is below the floors, dead or not.
 */
export const sweepFloors = statement(
  'sweep_floors',
  `WITH lanes AS MATERIALIZED (
    SELECT f.queue_no, f.priority, f.due_at FROM millrace.floors f
    WHERE f.queue_no = (SELECT no FROM millrace.queues WHERE name = $1)
  ), found AS MATERIALIZED (
    SELECT p.queue_no, p.priority, r.due_at FROM lanes p CROSS JOIN LATERAL (
      SELECT l.due_at FROM millrace.live l
      WHERE l.queue_no = p.queue_no AND ${isReady} AND l.priority = p.priority
        AND l.group_key = '' AND l.due_at < p.due_at
      ORDER BY l.due_at LIMIT 1
    ) r WHERE p.priority >= 0
    UNION ALL
    SELECT p.queue_no, p.priority, r.due_at FROM lanes p CROSS JOIN LATERAL (
      SELECT l.due_at FROM millrace.live l
      WHERE l.queue_no = p.queue_no AND l.stage = 1 AND l.due_at < p.due_at
      ORDER BY l.due_at LIMIT 1
    ) r WHERE p.priority = ${scheduledLane}
    UNION ALL
    SELECT p.queue_no, p.priority, r.created_at FROM lanes p CROSS JOIN LATERAL (
      SELECT l.created_at FROM millrace.live l
      WHERE l.queue_no = p.queue_no AND l.stage < 2 AND l.created_at >= 0
        AND l.lease_token IS NULL AND l.created_at < p.due_at
      ORDER BY l.created_at LIMIT 1
    ) r WHERE p.priority = ${createdLane}
  )
  UPDATE millrace.floors f SET due_at = s.due_at FROM found s
  WHERE f.queue_no = s.queue_no AND f.priority = s.priority AND f.due_at > s.due_at
  RETURNING f.priority, f.due_at`,
);
