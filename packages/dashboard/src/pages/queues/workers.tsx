import { useQuery } from '@tanstack/react-query';
import { count } from '../../parts/format.js';
import { Panel } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Time } from '../../parts/time.js';
import { nextQueries } from '../../queue/next-api.js';

/** Workers that pulled tasks in the last 10 minutes. */
export function Workers({ queue }: { queue: string }) {
  const workers = useQuery(nextQueries.workers(queue));
  return (
    <Panel title="Workers">
      <Loaded query={workers}>
        {(list) =>
          list.length === 0 ? (
            <Empty title="No worker in the last 10 minutes.">
              A queue with{' '}
              <code>
                callback: {'{'} protocol: pull {'}'}
              </code>{' '}
              is worked by clients that claim tasks.
            </Empty>
          ) : (
            <div className="scroll-x" tabIndex={0} role="group" aria-label="Workers">
              <table role="table" className="table cards">
                <thead>
                  <tr>
                    <th scope="col">Worker</th>
                    <th scope="col">Principal</th>
                    <th scope="col">Address</th>
                    <th scope="col" className="numeric">
                      In flight
                    </th>
                    <th scope="col" className="numeric">
                      Claimed
                    </th>
                    <th scope="col" className="numeric">
                      Completed
                    </th>
                    <th scope="col" className="numeric">
                      Failed
                    </th>
                    <th scope="col">Last seen</th>
                  </tr>
                </thead>
                <tbody>
                  {list.map((one) => (
                    <tr key={`${one.worker} ${one.principal} ${one.remote_ip}`}>
                      <th scope="row">{one.worker}</th>
                      <td data-label="Principal">{one.principal}</td>
                      <td data-label="Address" className="mono">
                        {one.remote_ip ?? '–'}
                      </td>
                      <td data-label="In flight" className="numeric">
                        {count(one.in_flight)}
                      </td>
                      <td data-label="Claimed" className="numeric">
                        {count(one.claimed)}
                      </td>
                      <td data-label="Completed" className="numeric">
                        {count(one.completed)}
                      </td>
                      <td data-label="Failed" className="numeric">
                        {count(one.failed)}
                      </td>
                      <td data-label="Last seen">
                        <Time at={one.last_seen_at} />
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
