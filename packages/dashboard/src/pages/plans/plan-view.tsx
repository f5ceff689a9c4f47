import type { DaemonSchema } from '@millrace/contract/daemon';
import { Link } from 'wouter';
import { daemon } from '../../api/client.js';
import { Confirm } from '../../parts/confirm.js';
import { Check, DialogButton, Field } from '../../parts/controls.js';
import { DataTable, type DataColumn } from '../../parts/data-table.js';
import { Graph } from '../../parts/graph.js';
import { baseName, unknown } from '../../parts/format.js';
import { useIdParam } from '../../parts/location.js';
import { Panel } from '../../parts/page.js';
import { Status } from '../../parts/status.js';
import { Time } from '../../parts/time.js';
import { useQuestions } from '../../questions/api.js';
import { QuestionPanel } from '../../questions/panel.js';
import { Checks, planTones, RaceView } from './race.js';

type Plan = DaemonSchema<'Plan'>;
type Task = DaemonSchema<'PlanTask'>;

/** One plan: status, tasks, what it waits for, and the selected task. */
export function PlanView({ plan }: { plan: Plan }) {
  const [selected, setSelected] = useIdParam('task');
  const questions = useQuestions();
  const waiting = plan.tasks.find(({ waiting_for: what }) => what === 'pick');
  const task = plan.tasks.find(({ key }) => key === selected) ?? waiting;
  const sessions = new Set(plan.tasks.flatMap((each) => each.sessions));
  return (
    <>
      <QuestionPanel
        questions={questions.open.filter(({ session_id: id }) => sessions.has(id))}
        showsAgents
      />
      <Panel title={plan.title} actions={<CancelButton plan={plan} />}>
        <div className="work-facts">
          <Status tone={planTones[plan.status]}>{plan.status}</Status>
          {plan.repo && <span title={plan.repo}>{baseName(plan.repo)}</span>}
          {plan.created_at && (
            <span className="muted">
              created <Time at={plan.created_at} />
            </span>
          )}
        </div>
        {plan.tasks.some(({ depends_on: keys = [] }) => keys.length > 0) && (
          <Graph
            label="Tasks and their dependencies"
            nodes={plan.tasks.map(nodeOf)}
            selected={task?.key}
            onSelect={setSelected}
          />
        )}
        <DataTable
          label="Tasks"
          columns={columns(setSelected)}
          rows={plan.tasks}
          rowKey={({ key }) => key}
        />
        {task && <TaskDetails plan={plan} task={task} />}
        {!task && <p className="muted panel-body">Select a task to see its prompt and result.</p>}
      </Panel>
    </>
  );
}

const nodeOf = ({ key, status, waiting_for: what, depends_on: after = [] }: Task) => ({
  id: key,
  name: key,
  after,
  status: what ? `${status} (${what})` : status,
  tone: planTones[status],
});

const columns = (onSelect: (key: string) => void): DataColumn<Task>[] => [
  {
    header: 'Task',
    cell: ({ key, title }) => (
      <button type="button" className="small" title={title} onClick={() => onSelect(key)}>
        {key}
      </button>
    ),
  },
  {
    header: 'Status',
    cell: ({ status, waiting_for: what }) => (
      <Status tone={planTones[status]}>{what ? `${status} (${what})` : status}</Status>
    ),
  },
  { header: 'Checks', cell: ({ verify }) => <Checks verify={verify} /> },
  { header: 'Agents', numeric: true, cell: ({ sessions }) => sessions.length },
  { header: 'Branch', className: 'mono', cell: ({ branch }) => branch ?? unknown },
  { header: 'After', cell: ({ depends_on: keys = [] }) => keys.join(', ') || unknown },
];

function CancelButton({ plan: { id, title, status } }: { plan: Plan }) {
  if (status !== 'running') return null;
  return (
    <DialogButton className="danger small" label="Cancel plan">
      {(onClose) => (
        <Confirm
          title={`Cancel ${title}?`}
          submitLabel="Cancel plan"
          dangerous
          run={() => daemon.call('cancelPlan', { path: { id } })}
          done={() => `Canceled ${title}.`}
          refresh={['plans']}
          onClose={onClose}
        >
          <p>Running agents are stopped and no task starts. Branches and worktrees stay.</p>
        </Confirm>
      )}
    </DialogButton>
  );
}

function TaskDetails({ plan, task }: { plan: Plan; task: Task }) {
  const { key, title, prompt, result, verify, sessions, race = [], claimed_by: holder } = task;
  return (
    <section className="work-item" aria-label={`Task ${key}`}>
      <div className="row">
        <h3>{title}</h3>
        {holder && <span className="muted">claimed by {holder}</span>}
        {sessions.map((id, at) => (
          <Link key={id} href={`/agents/${id}`}>
            Open agent{sessions.length > 1 ? ` ${at + 1}` : ''}
          </Link>
        ))}
      </div>
      <PersonControls plan={plan} task={task} />
      {race.length > 0 && <RaceView plan={plan} task={task} />}
      {prompt && <Text title="Prompt" text={prompt} />}
      {result !== null && <Text title="Result" text={result || 'No output.'} />}
      {verify && <Text title={`Checks: ${verify.command}`} text={verify.output || 'No output.'} />}
    </section>
  );
}

function Text({ title, text }: { title: string; text: string }) {
  return (
    <>
      <h4>{title}</h4>
      <pre className="work-text" tabIndex={0} aria-label={title}>
        {text}
      </pre>
    </>
  );
}

/** A task for a person is completed here. */
function PersonControls({ plan: { id }, task }: { plan: Plan; task: Task }) {
  const { key, assignee, status } = task;
  const complete = (form: FormData) =>
    daemon.call('completePlanTask', {
      path: { id, key },
      body: {
        result: String(form.get('result')),
        ...(task.claimed_by && { by: task.claimed_by }),
        ...(form.get('failed') === 'on' && { failed: true }),
      },
    });
  if (assignee !== 'person' || (status !== 'ready' && status !== 'waiting')) return null;
  return (
    <div className="row">
      <DialogButton className="primary small" label="Complete task">
        {(onClose) => (
          <Confirm
            title={`Complete ${task.title}`}
            submitLabel="Complete task"
            run={complete}
            done={() => `Completed ${key}.`}
            refresh={['plans']}
            onClose={onClose}
          >
            <Field
              label="Result"
              name="result"
              rows={4}
              hint="Tasks that depend on it get this text."
            />
            <Check label="It could not be done" name="failed" />
          </Confirm>
        )}
      </DialogButton>
    </div>
  );
}
