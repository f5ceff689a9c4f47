import * as queueLists from '@millrace/contract/lists/queue';
import { useQuery } from '@tanstack/react-query';
import { DataTable, listColumns } from '../../parts/data-table.js';
import { Panel } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { queueQueries } from '../../queue/api.js';

const columns = listColumns(queueLists.workers, {
  Worker: {},
  Principal: {},
  Address: { className: 'mono', cell: ({ remote_ip: address }) => address ?? '–' },
  'In flight': { numeric: true },
  Claimed: { numeric: true },
  Completed: { numeric: true },
  Failed: { numeric: true },
  Seen: { header: 'Last seen' },
});

/** Workers that pulled tasks in the last 10 minutes. */
export function Workers({ queue }: { queue: string }) {
  const workers = useQuery(queueQueries.workers(queue));
  return (
    <Panel title="Workers">
      <Loaded
        query={workers}
        empty={
          <Empty title="No worker in the last 10 minutes.">
            A queue with <code>{'callback: { protocol: pull }'}</code> is worked by clients that
            claim tasks.
          </Empty>
        }
      >
        {(list) => (
          <DataTable
            label="Workers"
            columns={columns}
            rows={list}
            rowKey={({ worker, principal, remote_ip: address }) =>
              `${worker} ${principal} ${address}`
            }
          />
        )}
      </Loaded>
    </Panel>
  );
}
