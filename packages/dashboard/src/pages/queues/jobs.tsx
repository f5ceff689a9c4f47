import { useQuery } from '@tanstack/react-query';
import { useAction } from '../../parts/action.js';
import { count } from '../../parts/format.js';
import { Panel } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Status, type Tone } from '../../parts/status.js';
import { Time } from '../../parts/time.js';
import { cancelJob, nextQueries, type Job } from '../../queue/next-api.js';

const tones: Readonly<Record<Job['status'], Tone>> = {
  running: 'busy',
  done: 'good',
  cancelled: 'off',
  failed: 'bad',
};

/** Redrives and purges that run in the background. */
export function Jobs({ queue }: { queue: string }) {
  const jobs = useQuery(nextQueries.jobs(queue));
  const cancel = useAction({
    run: cancelJob,
    done: () => 'Cancelled the job.',
    refresh: ['jobs'],
  });
  return (
    <Panel title="Jobs">
      <Loaded query={jobs}>
        {(list) =>
          list.length === 0 ? (
            <Empty title="No jobs.">
              A redrive or purge of many dead tasks can run as a job in the background.
            </Empty>
          ) : (
            <div className="scroll-x" tabIndex={0} role="group" aria-label="Jobs">
              <table className="table">
                <thead>
                  <tr>
                    <th scope="col">Job</th>
                    <th scope="col">Status</th>
                    <th scope="col" className="numeric">
                      Tasks
                    </th>
                    <th scope="col">Created</th>
                    <th scope="col">Finished</th>
                    <th scope="col">
                      <span className="visually-hidden">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {list.map((job) => (
                    <tr key={job.id}>
                      <th scope="row">
                        {job.action} <span className="mono muted">{job.id}</span>
                      </th>
                      <td>
                        <Status tone={tones[job.status]}>{job.status}</Status>
                      </td>
                      <td className="numeric">{count(job.count)}</td>
                      <td>
                        <Time at={job.created_at} />
                      </td>
                      <td>
                        <Time at={job.finished_at} />
                      </td>
                      <td>
                        {job.status === 'running' && (
                          <button
                            type="button"
                            className="small"
                            disabled={cancel.isPending}
                            onClick={() => cancel.mutate(job.id)}
                          >
                            Cancel job
                          </button>
                        )}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Loaded>
    </Panel>
  );
}
