import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { count } from '../../parts/format.js';
import { Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { column, VirtualTable, type Column } from '../../parts/virtual-table.js';
import { AllQueues } from './all-queues.js';
import { queueQueries, type QueueItem } from '../../queue/api.js';

const columns: readonly Column<QueueItem>[] = [
  column('Queue', 'minmax(0, 2fr)', ({ name }) => (
    <Link href={`/dead-letters/${name}`} className="row-link">
      {name}
    </Link>
  )),
  column('Dead letters', '7rem', ({ summary }) => count(summary.dlq_depth), { numeric: true }),
  column(
    'Callback',
    'minmax(0, 3fr)',
    ({ summary }) => <span className="muted">{summary.callback_url ?? 'pull'}</span>,
    { wideOnly: true },
  ),
];

/** Queues with dead tasks, most dead tasks first. */
export function DeadOverview() {
  const queues = useQuery(queueQueries.all());
  return (
    <Page title="Dead letters">
      <Loaded query={queues}>
        {(list) => {
          const dead = list
            .filter(({ summary }) => summary.dlq_depth > 0)
            .toSorted((a, b) => b.summary.dlq_depth - a.summary.dlq_depth);
          return dead.length === 0 ? (
            <Empty title="No dead tasks.">
              A task ends up here after its last attempt, a permanent failure or its expiry. You can
              redrive or purge it.
            </Empty>
          ) : (
            <>
              <VirtualTable
                label="Queues with dead letters"
                columns={columns}
                rows={dead}
                rowKey={({ name }) => name}
                narrowRowHeight={48}
              />
              <AllQueues queues={dead.map(({ name }) => name)} />
            </>
          );
        }}
      </Loaded>
    </Page>
  );
}
