import { statement, type Statement } from '../connection/statement.js';
import type { DeadTaskQuery } from '../../port/task-store.js';
import { endedColumns, fixedColumns, historyColumn, tasksOf } from './columns.js';

const filters = {
  errorType: 'e.error_type =',
  handlerRef: 'e.handler_ref =',
  httpStatus: 'e.http_status =',
  diedFrom: 'e.ended_at >=',
  diedBefore: 'e.ended_at <',
} as const;

/**
 * One page of dead tasks, without their payloads but with the sizes of these. The statement is not
 * prepared: which index is best depends on the values of the filters, and a plan for any value may
 * read all dead tasks.
 */
export function deadPage(query: DeadTaskQuery): { statement: Statement; values: unknown[] } {
  const isOldest = query.order === 'oldest_first';
  const values: unknown[] = [query.queue, query.limit + 1];
  let where = '';
  for (const key of Object.keys(filters) as (keyof typeof filters)[]) {
    const value = query.filter[key];
    if (value === undefined) continue;
    where += ` AND ${filters[key]} $${values.push(value)}`;
  }
  if (query.after) {
    const [at, id] = [values.push(query.after.deadAt), values.push(query.after.id)];
    where += ` AND (e.ended_at, e.id) ${isOldest ? '>' : '<'} ($${at}::bigint, $${id}::text)`;
  }
  const direction = isOldest ? '' : ' DESC';
  const text = `WITH page AS (
      SELECT e.* FROM millrace.ended e
      WHERE e.queue_no = (SELECT no FROM millrace.queues WHERE name = $1) AND e.outcome = 4${where}
      ORDER BY e.ended_at${direction}, e.id${direction} LIMIT $2
    )
    SELECT ${fixedColumns}, ${endedColumns('p')}, ${historyColumn('p')},
      octet_length(t.payload) AS payload_bytes
    FROM page p ${tasksOf('p')}
    ORDER BY p.ended_at${direction}, p.id${direction}`;
  return { statement: { name: '', text }, values };
}

export const payloads = statement(
  'payloads',
  'SELECT id, payload FROM millrace.tasks WHERE id = ANY($1::text[])',
);
