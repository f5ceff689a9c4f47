import { statement, type Statement } from '../statement.js';
import type { DeadTaskQuery } from '../../task-store.js';
import { endedColumns, fixedColumns, historyColumn, tasksOf } from './columns.js';

const filters = {
  errorType: { name: 'error', text: 'e.error_type =' },
  handlerRef: { name: 'handler', text: 'e.handler_ref =' },
  httpStatus: { name: 'status', text: 'e.http_status =' },
  diedFrom: { name: 'from', text: 'e.ended_at >=' },
  diedBefore: { name: 'before', text: 'e.ended_at <' },
} as const;

/**
 * One page of dead tasks, without their payloads but with the sizes of these. Each set of filters is
 * a statement of its own, so that the database finds the index for it.
 */
export function deadPage(query: DeadTaskQuery): { statement: Statement; values: unknown[] } {
  const isOldest = query.order === 'oldest_first';
  const values: unknown[] = [query.queue, query.limit + 1];
  const names = [isOldest ? 'oldest' : 'newest'];
  let where = '';
  for (const key of Object.keys(filters) as (keyof typeof filters)[]) {
    const value = query.filter[key];
    if (value === undefined) continue;
    where += ` AND ${filters[key].text} $${values.push(value)}`;
    names.push(filters[key].name);
  }
  if (query.after) {
    const [at, id] = [values.push(query.after.deadAt), values.push(query.after.id)];
    where += ` AND (e.ended_at, e.id) ${isOldest ? '>' : '<'} ($${at}::bigint, $${id}::text)`;
    names.push('after');
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
  return { statement: statement(`dead_page_${names.join('_')}`, text), values };
}

export const payloads = statement(
  'payloads',
  'SELECT id, payload FROM millrace.tasks WHERE id = ANY($1::text[])',
);
