import type { DaemonSchema } from '@millrace/contract/daemon';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { queries } from '../../api/queries.js';
import { count, unknown } from '../../parts/format.js';
import { Id } from '../../parts/id.js';
import { OutsideLink } from '../../parts/outside-link.js';
import { Fact, Panel } from '../../parts/page.js';
import { Time } from '../../parts/time.js';
import { ContextBar } from '../../sessions/context-bar.js';
import { costText, useCosts } from '../../sessions/cost.js';
import { useGuardSettings } from '../../sessions/settings.js';
import { CompactChoice } from './controls.js';

type Session = DaemonSchema<'Session'>;

/** The fields of a session. */
export function Facts({ session }: { session: Session }) {
  const costOf = useCosts();
  const { critical } = useGuardSettings();
  const cost = costOf(session);
  // The task has a row of its own, with a link.
  const tags = session.tags.filter((tag) => !(session.task && tag.startsWith('queue-task:')));
  return (
    <Panel title="Details">
      <dl className="facts">
        <Fact name="Context">
          <ContextBar session={session} critical={critical} />
        </Fact>
        <Fact name="Compaction">
          <CompactChoice session={session} />
        </Fact>
        <Fact name="Cost">
          {costText(cost)}
          {cost && (
            <span className="muted">
              {' '}
              {count(cost.input_tokens)} in, {count(cost.output_tokens)} out
            </span>
          )}
        </Fact>
        <Fact name="Backend">
          {session.backend}
          {session.model && <span className="muted"> {session.model}</span>}
        </Fact>
        <Fact name="Driver">
          {session.driver}
          {session.pid !== null && <span className="muted"> pid {session.pid}</span>}
        </Fact>
        <Fact name="Branch">{session.branch ?? unknown}</Fact>
        <Fact name="Directory">
          <span className="mono">{session.workdir}</span>
        </Fact>
        {session.serve && (
          <Fact name="Served at">
            <OutsideLink href={session.serve.url}>{session.serve.url}</OutsideLink>
          </Fact>
        )}
        {session.task && <TaskFact task={session.task} id={session.id} />}
        {session.pipeline_id && (
          <Fact name="Pipeline">
            <Link href={`/pipelines/${session.pipeline_id}`}>job {session.job_id}</Link>
          </Fact>
        )}
        {session.parent_id && (
          <Fact name="Parent">
            <Link href={`/agents/${session.parent_id}`}>
              <Id value={session.parent_id} />
            </Link>
          </Fact>
        )}
        {tags.length > 0 && (
          <Fact name="Tags">
            <span className="row">
              {tags.map((tag) => (
                <span key={tag} className="tag" title={tag}>
                  {tag}
                </span>
              ))}
            </span>
          </Fact>
        )}
        <Fact name="Restarts">
          {session.restart_count}
          {session.auto_restart && <span className="muted"> restarts automatically</span>}
        </Fact>
        <Fact name="Started">
          <Time at={session.created_at} />
        </Fact>
        <Fact name="Session">
          <span className="mono">{session.id}</span>
        </Fact>
        <Fact name="Prompt">
          <span className="agent-prompt">{session.prompt}</span>
        </Fact>
      </dl>
      {session.driver === 'tmux' && session.pid !== null && (
        <p className="panel-body muted">
          Open its terminal: <code>ctl agent attach {session.id}</code>
        </p>
      )}
    </Panel>
  );
}

/** The queue task that the session works on, and its other attempts. */
function TaskFact({ task, id }: { task: NonNullable<Session['task']>; id: string }) {
  const { data: sessions = [] } = useQuery(queries.sessions());
  const others = sessions.filter((other) => other.task?.id === task.id && other.id !== id);
  return (
    <Fact name="Task">
      <Link href={`/tasks/${task.id}`}>
        <Id value={task.id} />
      </Link>
      <span className="muted">
        {' '}
        of {task.queue}, attempt {task.attempt}
      </span>
      {others.map((other) => (
        <span key={other.id}>
          , <Link href={`/agents/${other.id}`}>attempt {other.task!.attempt}</Link>
        </span>
      ))}
    </Fact>
  );
}
