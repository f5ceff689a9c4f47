/** Fills a queue in PostgreSQL: of 100 tasks 20 wait, half of them for their time, and one is dead. */
import { queueConfig } from '../shared/stores.mjs';
import { groups, queue } from './cases.mjs';

const step = 500_000;
const day = 86_400_000;
const tables = "('tasks', 'live', 'ended')";
/** Task n of `g`, its id in the order of creation. */
const id = "'01KE6S000000000' || lpad(n::text, 11, '0')";

export async function fillPostgres(database, count) {
  const to = Date.now() - 60_000;
  const from = to - Math.ceil(count / 10);
  await database.withClient(async (client) => {
    await client.query('SET synchronous_commit = off');
    await client.query(
      `INSERT INTO millrace.queues (name, config, paused, version, incarnation, created_at,
        changed_at) VALUES ($1, $2, true, 1, $3, $4, $4)`,
      [queue, JSON.stringify(queueConfig), '01KE6S00000000000000000000', from],
    );
    await client.query(
      `INSERT INTO millrace.queue_locks (queue_no, starts) SELECT no, '[]' FROM millrace.queues`,
    );
    const { rows } = await client.query(`SELECT indexdef, i.indexname FROM pg_indexes i
      WHERE schemaname = 'millrace' AND tablename IN ${tables} AND indexname NOT LIKE '%_pkey'`);
    for (const { indexname } of rows) await client.query(`DROP INDEX millrace.${indexname}`);
    for (let first = 1; first <= count; first += step) {
      const last = Math.min(count, first + step - 1);
      for (const text of inserts(first, last, from)) await client.query(text);
    }
    for (const { indexdef } of rows) await client.query(indexdef);
    await client.query(`INSERT INTO millrace.counters (queue_no, pending, in_flight, dead)
      SELECT q.no, (SELECT count(*) FROM millrace.live), 0,
        (SELECT count(*) FROM millrace.ended WHERE outcome = 4) FROM millrace.queues q`);
    await client.query('VACUUM ANALYZE');
    await client.query('CHECKPOINT');
  });
  return { from, to };
}

function inserts(first, last, from) {
  const series = `generate_series(${first}, ${last}) AS n CROSS JOIN millrace.queues q`;
  const createdAt = `${from}::bigint + n / 10`;
  const handler = "CASE n % 10000 WHEN 0 THEN 'rare' ELSE 'common' END";
  const isRareError = 'n % 10000 = 0';
  return [
    `INSERT INTO millrace.tasks (id, queue, handler_ref, priority, group_key, created_at,
      first_due_at, submitted_by, content_type, headers, payload)
    SELECT ${id}, q.name, ${handler}, n % 10, 'group-' || n % ${groups}, ${createdAt},
      ${createdAt}, 'shop', 'text/plain', '{}', convert_to(repeat('x', 200), 'UTF8')
    FROM ${series}`,
    `INSERT INTO millrace.live (id, queue_no, created_at, updated_at, due_at, attempt,
      total_attempts, redrive_count, stage, priority, started, group_key, attempts)
    SELECT ${id}, q.no, ${createdAt}, ${createdAt},
      ${createdAt} + CASE WHEN n % 10 = 1 THEN ${day} ELSE 0 END, 0, 0, 0,
      CASE WHEN n % 10 = 1 THEN 1 ELSE 0 END, n % 10, false, 'group-' || n % ${groups}, '{}'
    FROM ${series} WHERE n % 10 < 2 AND n % 100 <> 0`,
    `INSERT INTO millrace.ended (id, queue_no, ended_at, attempt, total_attempts, redrive_count,
      outcome, handler_ref, error_type, http_status, dead_reason, attempts)
    SELECT ${id}, q.no, ${createdAt}, 1, 1, 0, CASE WHEN n % 100 = 0 THEN 4 ELSE 3 END,
      CASE WHEN n % 100 = 0 THEN ${handler} ELSE '' END,
      CASE WHEN ${isRareError} THEN 'refused' WHEN n % 100 = 0 THEN 'timeout' END,
      CASE WHEN ${isRareError} THEN 418 WHEN n % 100 = 0 THEN 504 END,
      CASE WHEN n % 100 = 0 THEN 'PERMANENT' END, '{}'
    FROM ${series} WHERE n % 10 >= 2 OR n % 100 = 0`,
  ];
}
