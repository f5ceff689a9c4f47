import type { PostgresServer } from './postgres-server.js';

/** Invalid states, each with a statement that finds it. */
const faults: Record<string, string> = {
  'a task that is neither live nor ended nor buried': `SELECT t.id FROM millrace.tasks t
    WHERE (t.purged_at IS NULL)
      <> (EXISTS (SELECT 1 FROM millrace.live l WHERE l.id = t.id)
        OR EXISTS (SELECT 1 FROM millrace.ended e WHERE e.id = t.id))`,
  'a task that is live and ended':
    'SELECT l.id FROM millrace.live l JOIN millrace.ended USING (id)',
  'a row without its task': `SELECT id FROM (SELECT id FROM millrace.live
      UNION ALL SELECT id FROM millrace.ended) AS r
    WHERE NOT EXISTS (SELECT 1 FROM millrace.tasks t WHERE t.id = r.id)`,
  'a row of no queue': `SELECT id FROM (SELECT id, queue_no FROM millrace.live
      UNION ALL SELECT id, queue_no FROM millrace.ended) AS r
    WHERE NOT EXISTS (SELECT 1 FROM millrace.queues q WHERE q.no = r.queue_no)
      AND NOT EXISTS (SELECT 1 FROM millrace.deleted_queues w WHERE w.queue_no = r.queue_no)`,
  'a lease of one that does not run, or none of one that does': `SELECT id FROM millrace.live
    WHERE (stage = 2 AND lease_token IS NULL) OR (stage = 1 AND lease_token IS NOT NULL)
      OR (stage = 0 AND lease_token IS NOT NULL AND group_key <> '')
      OR (lease_token IS NULL) <> (lease_expires_at IS NULL) OR (stage = 2) <> (due_at IS NULL)`,
  'a lease whose end nobody would see': `SELECT l.id FROM millrace.live l
    WHERE l.lease_token IS NOT NULL AND NOT EXISTS (SELECT 1 FROM millrace.claims c
      WHERE c.lease_expires_at = l.lease_expires_at AND l.id = ANY(c.ids))`,
  'a queue without its low-water marks, or marks without their queue': `SELECT f.queue_no, count(*)
    FROM millrace.low_water_marks f LEFT JOIN millrace.queues q ON q.no = f.queue_no
    GROUP BY f.queue_no HAVING count(*) <> 12 OR count(q.no) = 0
    UNION ALL SELECT no, 0 FROM millrace.queues
    WHERE no NOT IN (SELECT queue_no FROM millrace.low_water_marks)`,
  'a queue without its lock, or a lock without its queue': `SELECT q.no, g.queue_no
    FROM millrace.queues q FULL JOIN millrace.queue_locks g ON g.queue_no = q.no
    WHERE q.no IS NULL OR g.queue_no IS NULL`,
  'a wait of one that is in flight, or a row of a flow without its task': `SELECT l.id FROM millrace.live l WHERE l.wait IS NOT NULL AND l.lease_token IS NOT NULL
    UNION ALL SELECT r.id FROM millrace.flow_rows r WHERE r.kind < 7
      AND NOT EXISTS (SELECT 1 FROM millrace.tasks t WHERE t.id = r.id AND t.purged_at IS NULL)`,
  'counts that are not those of the tasks': `SELECT q.name, b.pending, b.in_flight, b.dead,
      l.pending AS waiting, l.in_flight AS running, e.dead AS ended
    FROM millrace.queues q
    CROSS JOIN LATERAL (SELECT coalesce(sum(pending), 0) AS pending,
      coalesce(sum(in_flight), 0) AS in_flight, coalesce(sum(dead), 0) AS dead
      FROM millrace.counters WHERE queue_no = q.no) b
    CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE lease_token IS NULL) AS pending,
      count(*) FILTER (WHERE lease_token IS NOT NULL) AS in_flight
      FROM millrace.live WHERE queue_no = q.no) l
    CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE outcome = 4) AS dead
      FROM millrace.ended WHERE queue_no = q.no) e
    WHERE (b.pending, b.in_flight, b.dead) <> (l.pending, l.in_flight, e.dead)`,
};

const allFaults = Object.entries(faults)
  .map(
    ([fault, text]) => `SELECT '${fault}: ' || json_agg(row)::text AS problem
    FROM (SELECT * FROM (${text}) AS found LIMIT 3) AS row HAVING count(*) > 0`,
  )
  .join('\nUNION ALL\n');

/** Finds inconsistent rows. */
export async function tableProblems(postgres: PostgresServer, url: string): Promise<string[]> {
  const rows = await postgres.sql(url, allFaults, 'faults');
  return rows.map(({ problem }) => String(problem));
}
