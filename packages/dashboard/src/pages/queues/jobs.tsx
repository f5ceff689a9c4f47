import * as queueLists from '@millrace/contract/lists/queue';
import { useQuery } from '@tanstack/react-query';
import { useAction } from '../../parts/action.js';
import { Button } from '../../parts/controls.js';
import { DataTable, listColumns } from '../../parts/data-table.js';
import { Panel } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Status, type Tone } from '../../parts/status.js';
import { queueQueries, queueServer, type Job } from '../../queue/api.js';

const tones: Readonly<Record<Job['status'], Tone>> = {
  running: 'busy',
  done: 'good',
  cancelled: 'off',
  failed: 'bad',
};

/** Redrives and purges that run in the background. */
export function Jobs({ queue }: { queue: string }) {
  const jobs = useQuery(queueQueries.jobs(queue));
  const cancel = useAction({
    run: (id: string) => queueServer.call('cancelJob', { path: { id } }),
    done: () => 'Cancelled the job.',
    refresh: ['jobs'],
  });
  const columns = listColumns(queueLists.jobs, {
    Job: {
      cell: ({ action, id }) => (
        <>
          {action} <span className="mono muted">{id}</span>
        </>
      ),
    },
    Status: { cell: ({ status }) => <Status tone={tones[status]}>{status}</Status> },
    Tasks: { numeric: true },
    Created: {},
    Finished: {},
    Actions: {
      isBare: true,
      cell: ({ id, status }) =>
        status === 'running' && (
          <Button className="small" disabled={cancel.isDisabled} onClick={() => cancel.mutate(id)}>
            Cancel job
          </Button>
        ),
    },
  });
  return (
    <Panel title="Jobs">
      <Loaded
        query={jobs}
        empty={
          <Empty title="No jobs.">
            A redrive or purge of many dead tasks can run as a job in the background.
          </Empty>
        }
      >
        {(list) => (
          <DataTable
            label="Jobs"
            isCards={false}
            columns={columns}
            rows={list}
            rowKey={({ id }) => id}
          />
        )}
      </Loaded>
    </Panel>
  );
}
