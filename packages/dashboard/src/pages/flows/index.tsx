import { ApiError } from '@millrace/client';
import type { QueueSchema } from '@millrace/contract/queue';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { Graph, type GraphNode } from '../../parts/graph.js';
import { useIdParam } from '../../parts/location.js';
import { Page, Panel } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Status, type Tone } from '../../parts/status.js';
import { Time } from '../../parts/time.js';
import { queueQueries } from '../../queue/api.js';

type Node = QueueSchema<'FlowNode'>;

/** The tasks of a flow as a graph. */
export default function FlowPage({ params }: { params: Readonly<Record<string, string>> }) {
  const id = params['id']!;
  const flow = useQuery(queueQueries.flow(id));
  const isGone = flow.error instanceof ApiError && flow.error.code === 'TASK_NOT_FOUND';
  return (
    <Page title="Flow" above={<Link href="/queues">Queues</Link>}>
      {isGone && !flow.data ? (
        <Empty title={`Flow ${id} does not exist.`}>
          Tasks of a flow are deleted after the retention of their queues.
        </Empty>
      ) : (
        <Panel title={id}>
          <Loaded query={flow}>{({ tasks }) => <FlowView tasks={tasks} />}</Loaded>
        </Panel>
      )}
    </Page>
  );
}

function FlowView({ tasks }: { tasks: readonly Node[] }) {
  const [selected, setSelected] = useIdParam('task');
  const counts = new Map<string, { tone: Tone; count: number }>();
  for (const task of tasks) {
    const { text, tone } = stateOf(task);
    counts.set(text, { tone, count: (counts.get(text)?.count ?? 0) + 1 });
  }
  const keys = new Map(tasks.map(({ id, key }) => [id, key]));
  const task = tasks.find(({ id }) => id === selected);
  return (
    <>
      <div className="panel-body row">
        {Array.from(counts, ([text, { tone, count }]) => (
          <Status key={text} tone={tone}>{`${count} ${text}`}</Status>
        ))}
      </div>
      <Graph
        label="Tasks and their dependencies"
        nodes={tasks.map((each) => nodeOf(each, keys))}
        selected={selected}
        onSelect={setSelected}
      />
      {task ? (
        <TaskFacts task={task} />
      ) : (
        <p className="muted panel-body">Select a task to see its status.</p>
      )}
    </>
  );
}

/** Dead is red, succeeded green, and what waits grey. */
function stateOf({ hidden, status, waiting_for: wait }: Node): { text: string; tone: Tone } {
  if (hidden) return { text: 'hidden', tone: 'off' };
  if (status === 'DEAD') return { text: 'dead', tone: 'bad' };
  if (status === 'SUCCEEDED') return { text: 'succeeded', tone: 'good' };
  if (status === 'IN_FLIGHT') return { text: 'running', tone: 'busy' };
  return { text: wait ? 'waiting' : 'due', tone: 'calm' };
}

function nodeOf(task: Node, keys: ReadonlyMap<string, string>): GraphNode {
  const { text, tone } = stateOf(task);
  const after = (task.depends_on ?? []).map(({ id }) => id).filter((id) => keys.has(id));
  const note = after.length > 0 ? `after ${after.map((id) => keys.get(id)).join(', ')}` : '';
  return { id: task.id, name: task.key, after, tone, status: text, note };
}

function TaskFacts({ task }: { task: Node }) {
  const { text, tone } = stateOf(task);
  return (
    <section className="panel-body" aria-label={`Task ${task.key}`}>
      <div className="row">
        <h3>{task.key}</h3>
        <Status tone={tone}>{text}</Status>
        {!task.hidden && (
          <>
            <span className="muted">
              {task.handler_ref} in {task.queue}, submitted <Time at={task.created_at} />
              {task.ended_at && (
                <>
                  , ended <Time at={task.ended_at} />
                </>
              )}
            </span>
            <Link href={`/tasks/${task.id}`}>Open task</Link>
          </>
        )}
      </div>
    </section>
  );
}
