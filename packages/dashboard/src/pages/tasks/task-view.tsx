import { useQuery } from '@tanstack/react-query';
import { queries } from '../../api/queries.js';
import { duration, words } from '../../parts/format.js';
import { Link } from 'wouter';
import { Copy } from '../../parts/id.js';
import { Fact } from '../../parts/page.js';
import { Status, type Tone } from '../../parts/status.js';
import { Time } from '../../parts/time.js';
import type { QueueSchema } from '@millrace/contract/queue';
import type { Task } from '../../queue/api.js';
import { bytesOf } from './content.js';
import { FlowFacts, SignalForm, TaskTree } from './flow-parts.js';
import { taskTones, type TaskHistory } from './timeline.js';
import { TimelineView } from './timeline-view.js';
import { Viewer } from './viewer.js';
import './tasks.css';

type Attempt = Task['attempts'][number];

const waits: Readonly<Record<string, string>> = {
  time: 'Not due yet.',
  paused: 'The queue is paused, or held because its callback is no longer on the allowlist.',
  concurrency: 'The queue is at its concurrency limit.',
  rate_limit: 'The queue is at its dispatch rate limit.',
  circuit_open: 'The circuit breaker is open because its handler keeps failing.',
  group: 'Waiting for an earlier task of its group.',
  no_worker: 'No worker is connected.',
  dispatch: 'Ready to be dispatched.',
  dependencies: 'Waiting for the tasks it depends on.',
  timer: 'Suspended until a time.',
  signal: 'Suspended until a signal arrives.',
  tasks: 'Suspended until other tasks end.',
};

interface FullHistory extends TaskHistory {
  children?: QueueSchema<'TaskTree'> | undefined;
}

/** All fields of a task, its payload and its attempts. */
export function TaskView({ task, history }: { task: Task; history?: FullHistory | undefined }) {
  const { status, waiting_for: waiting, headers } = task;
  const signals = status === 'PENDING' ? history?.run?.wait?.signals : undefined;
  return (
    <div className="stack">
      <dl className="facts task-facts">
        <Fact name="Status">
          <Status tone={taskTones[status]}>{status.toLowerCase()}</Status>{' '}
          {waiting && <span className="muted">{waits[waiting]}</span>}
        </Fact>
        <Fact name="Id">
          <span className="mono">{task.id}</span> <Copy text={task.id} name="id" />
        </Fact>
        <Fact name="Handler">{task.handler_ref}</Fact>
        <Fact name="Queue">
          <Link href={`/queues/${task.queue}`}>{task.queue}</Link>
        </Fact>
        <Fact name="Priority">{task.priority}</Fact>
        {task.group_key !== null && <Fact name="Group">{task.group_key}</Fact>}
        {task.progress && <ProgressRow progress={task.progress} isLive={status === 'IN_FLIGHT'} />}
        <Fact name="Attempts">{attemptsText(task)}</Fact>
        <Agents task={task.id} />
        <Fact name="Submitted">
          <Time at={task.created_at} /> by {task.submitted_by}
        </Fact>
        {task.next_attempt_at && (
          <Fact name="Next attempt">
            <Time at={task.next_attempt_at} />
          </Fact>
        )}
        {task.breaker?.next_probe_at && (
          <Fact name="Breaker">
            {task.breaker.state.replace('_', ' ')}, next probe{' '}
            <Time at={task.breaker.next_probe_at} />
          </Fact>
        )}
        {task.wakes_at && (
          <Fact name="Wakes at">
            <Time at={task.wakes_at} />
          </Fact>
        )}
        <FlowFacts task={task} />
        {task.dead_at && (
          <Fact name="Dead at">
            <Time at={task.dead_at} />
            {task.dead_reason && `, ${reasons[task.dead_reason] ?? words(task.dead_reason)}`}
          </Fact>
        )}
        {Object.keys(headers).length > 0 && (
          <Fact name="Headers" className="mono">
            {Object.entries(headers).map(([name, value]) => (
              <div key={name}>
                {name}: {value}
              </div>
            ))}
          </Fact>
        )}
      </dl>
      {signals && <SignalForm key={signals.join()} id={task.id} names={signals} />}
      <Payload task={task} />
      <Result task={task} />
      {history?.children && <TaskTree tree={history.children} />}
      <History task={task} history={history} />
    </div>
  );
}

/** The agents that worked on the task, one for each attempt. */
function Agents({ task }: { task: string }) {
  const { data: sessions = [] } = useQuery(queries.sessions());
  const own = sessions.filter((session) => session.task?.id === task);
  if (own.length === 0) return null;
  return (
    <Fact name="Agents">
      {own.map(({ id, name, task: attempt }) => (
        <div key={id}>
          <Link href={`/agents/${id}`}>{name}</Link>
          <span className="muted"> attempt {attempt!.attempt}</span>
        </div>
      ))}
    </Fact>
  );
}

const reasons: Readonly<Record<string, string>> = {
  ATTEMPTS_EXHAUSTED: 'after its last attempt',
  PERMANENT: 'after a permanent failure',
  EXPIRED: 'because it expired',
  CANCELLED: 'because it was cancelled',
  DEPENDENCY_FAILED: 'because a task it depends on did not succeed',
  FLOW_STUCK: 'because it was suspended 10,000 times without recording a step',
};

function attemptsText({ attempt, max_attempts, total_attempts, redrive_count }: Task): string {
  const text = `${attempt} of ${max_attempts}`;
  return redrive_count === 0
    ? text
    : `${text} since redrive ${redrive_count}, ${total_attempts} in total`;
}

function Payload({ task: { payload, payload_content_type: type } }: { task: Task }) {
  if (payload === '') return <p className="muted">No payload.</p>;
  return <Viewer title="Payload" content={bytesOf(payload)} type={type} />;
}

function Result({ task: { result, result_dropped } }: { task: Task }) {
  if (result_dropped) return <p className="muted">The result was too large to keep.</p>;
  if (result === undefined || result === null) return null;
  const content = new TextEncoder().encode(JSON.stringify(result));
  return <Viewer title="Result" content={content} type="application/json" />;
}

interface ProgressRowProps {
  progress: QueueSchema<'Progress'>;
  /** A bar would look as if it still moved. */
  isLive: boolean;
}

function ProgressRow({ progress, isLive }: ProgressRowProps) {
  const { percent: done, message, at } = progress;
  return (
    <Fact name={isLive ? 'Progress' : 'Last progress'}>
      {isLive && done !== null && <progress max={100} value={done} aria-label="Progress" />}{' '}
      {done !== null && `${Math.round(done)}%`} {message}{' '}
      <span className="muted">
        <Time at={at} />
      </span>
    </Fact>
  );
}

function History({ task, history }: { task: Task; history: TaskHistory | undefined }) {
  const { attempts } = task;
  return (
    <section aria-label="Attempts">
      <h3>{history?.run?.steps.length || history?.run?.wait ? 'Time line' : 'Attempts'}</h3>
      <TimelineView task={task} {...(history && { history })} />
      {attempts.length === 0 && <p className="muted">No attempt has finished yet.</p>}
      <ol className="task-attempts">
        {attempts.toReversed().map((attempt, at, all) => (
          <AttemptItem
            key={`${attempt.redrive}.${attempt.attempt}`}
            attempt={attempt}
            above={all[at - 1]}
          />
        ))}
      </ol>
    </section>
  );
}

const outcomeTones: Readonly<Record<string, Tone>> = {
  SUCCEEDED: 'good',
  FAILED: 'bad',
  LEASE_EXPIRED: 'warn',
  INTERRUPTED: 'off',
  DEFERRED: 'off',
};

/** What is the same as in the attempt above is not repeated. */
function AttemptItem({ attempt, above }: { attempt: Attempt; above: Attempt | undefined }) {
  const { outcome, error_type, http_status, message, response_snippet: snippet } = attempt;
  return (
    <li className="task-attempt">
      <div className="row">
        <strong>
          {attempt.attempt}
          {attempt.redrive > 0 && ` (redrive ${attempt.redrive})`}
        </strong>
        <Status tone={outcomeTones[outcome] ?? 'off'}>{outcome.toLowerCase()}</Status>
        {error_type && <span>{error_type}</span>}
        {http_status !== null && <span>HTTP {http_status}</span>}
        <span className="muted">
          <Time at={attempt.started_at} />, {duration(attempt.duration_ms)}
        </span>
      </div>
      {message && message !== above?.message && <p>{message}</p>}
      {message && message === above?.message && <p className="muted">The same error as above.</p>}
      {snippet && snippet === above?.response_snippet && (
        <p className="muted">The same response as above.</p>
      )}
      {snippet && snippet !== above?.response_snippet && (
        <pre className="task-payload" tabIndex={0}>
          {snippet}
        </pre>
      )}
      {attempt.url && (
        <p className="muted">
          {attempt.url}
          {attempt.remote_ip && ` at ${attempt.remote_ip}`}
        </p>
      )}
    </li>
  );
}
