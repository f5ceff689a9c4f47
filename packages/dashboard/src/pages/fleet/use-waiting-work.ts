import { useQuery } from '@tanstack/react-query';
import { queries } from '../../api/queries.js';
import { useServers } from '../../api/servers.js';
import { listTasks, queueQueries } from '../../queue/api.js';
import { waitingJobs, type WaitingWork } from './board-columns.js';

/** The queue of `ctl agent submit`. */
const agentsQueue = 'agents';

/** Work without a session: pending tasks of the agents queue, and jobs of running pipelines. */
export function useWaitingWork(): { work: readonly WaitingWork[]; total: number } {
  const { data: pipelines = [] } = useQuery(queries.pipelines());
  const isLive = useServers().queue.state === 'live';
  const { data: queues } = useQuery({ ...queueQueries.all(), enabled: isLive });
  const queue = queues?.find(({ name }) => name === agentsQueue);
  const { data: tasks = [] } = useQuery({
    queryKey: ['tasks', agentsQueue, 'board'],
    queryFn: async () => (await listTasks(agentsQueue, { status: ['PENDING'] }, 'next', '')).tasks,
    enabled: queue !== undefined,
    refetchInterval: 3_000,
  });
  const work = [
    ...waitingJobs(pipelines),
    ...tasks.map(({ id, handler_ref }) => ({
      id,
      title: handler_ref,
      note: `Task of the queue ${agentsQueue}`,
      href: `/tasks/${id}`,
    })),
  ];
  const unread = Math.max((queue?.summary.pending ?? 0) - tasks.length, 0);
  return { work, total: work.length + unread };
}
