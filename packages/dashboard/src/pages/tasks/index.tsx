import { ApiError } from '@millrace/client';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { queueQueries, type Task } from '../../queue/api.js';
import { Page, Panel } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { TaskActions } from './actions.js';
import { TaskView } from './task-view.js';

/** One task of any queue, and what can be done with it. */
export default function TaskPage({ params }: { params: Readonly<Record<string, string>> }) {
  const id = params['id']!;
  const task = useQuery(queueQueries.task(id));
  const found = task.data;
  const history = useQuery({
    ...queueQueries.history(id, isOpen(found)),
    enabled: !!found && hasHistory(found),
  });
  const above = found ? (
    <Link href={`/queues/${found.queue}`}>{found.queue}</Link>
  ) : (
    <Link href="/queues">Queues</Link>
  );
  const isGone = task.error instanceof ApiError && task.error.code === 'TASK_NOT_FOUND';
  return (
    <Page
      title={found ? found.handler_ref : 'Task'}
      above={above}
      actions={found && <TaskActions task={found} />}
    >
      {isGone && !found ? (
        <Empty title={`Task ${id} does not exist.`}>
          Succeeded tasks are deleted after the retention of their queue.
        </Empty>
      ) : (
        <Panel title="Task">
          <div className="panel-body">
            <Loaded query={task}>{(one) => <TaskView task={one} history={history.data} />}</Loaded>
          </div>
        </Panel>
      )}
    </Page>
  );
}

/** Whether there is more to show than attempts; a plain task saves two requests a second. */
function hasHistory({ step_count, has_children, waiting_for: waiting }: Task): boolean {
  return !!step_count || !!has_children || suspensions.has(waiting ?? '');
}

const suspensions: ReadonlySet<string> = new Set(['timer', 'signal', 'tasks']);

function isOpen(task: Task | undefined): boolean {
  return task?.status === 'PENDING' || task?.status === 'IN_FLIGHT';
}
