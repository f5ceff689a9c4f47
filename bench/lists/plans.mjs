/** Query plans of the listings on PostgreSQL, and whether a table was read from end to end. */
import { deadPage } from '../../packages/queue/dist/storage/postgres/dead-letters.js';
import { scanTasks } from '../../packages/queue/dist/storage/postgres/task-lists.js';

/** Which scans PostgreSQL plans for the page, such as `Index Scan tasks_listed`. */
export async function planOf(database, { isDead, query }) {
  const { statement, values } = isDead
    ? deadPage(query)
    : scanTasks(sourceOf(query), query, query.limit + 1);
  const scans = new Set();
  await database.withClient(async (client) => {
    const { rows } = await client.query(`EXPLAIN (FORMAT JSON) ${statement.text}`, values);
    collect(rows[0]['QUERY PLAN'][0].Plan, scans);
  });
  return [...scans].join(', ');
}

function sourceOf({ filter, order }) {
  if (order === 'next') return 'next';
  return filter.statuses?.every((status) => status === 'PENDING') ? 'pending' : 'all';
}

/** `queues` has one row for each queue, which is read in one page. */
function collect(node, scans) {
  const isTable = !['queues'].includes(node['Relation Name']);
  if (node['Index Name'] && isTable) scans.add(node['Index Name']);
  if (node['Node Type'] === 'Seq Scan' && isTable) scans.add(`Seq Scan ${node['Relation Name']}`);
  for (const child of node.Plans ?? []) collect(child, scans);
}

/** Sequential scans so far, of closed connections: the others report theirs a second later. */
export async function sequentialScans(database) {
  let count;
  await database.withClient(async (client) => {
    const { rows } = await client.query(`SELECT sum(seq_scan) AS count FROM pg_stat_user_tables
      WHERE schemaname = 'millrace' AND relname IN ('tasks', 'live', 'ended')`);
    count = Number(rows[0].count);
  });
  return count;
}
