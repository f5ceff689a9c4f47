import { ApiError } from '@millrace/client';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from 'wouter';
import { queries } from '../../api/queries.js';
import { useChoice } from '../../parts/choice.js';
import { onDemand } from '../../parts/on-demand.js';
import { Page, Panel } from '../../parts/page.js';
import { useShortcut } from '../../parts/shortcuts.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Status } from '../../parts/status.js';
import { Time } from '../../parts/time.js';
import { useQuestions } from '../../questions/api.js';
import { QuestionPanel } from '../../questions/panel.js';
import { isOver, sessionTones } from '../../sessions/status.js';
import { Controls } from './controls.js';
import { ExplainPanel } from './explain-panel.js';
import { Facts } from './facts.js';
import { useOutput } from './output.js';
import { OutputView } from './output-view.js';
import { SendForm } from './send-form.js';
import './agent.css';

type Session = DaemonSchema<'Session'>;

const Review = onDemand(() => import('./review/index.js'), { rows: 8 });

const tabs = { output: 'Output', changes: 'Changes' };

export default function AgentPage({ params }: { params: Readonly<Record<string, string>> }) {
  const id = params['id']!;
  const client = useQueryClient();
  const session = useQuery({
    ...queries.session(id),
    // The fleet list already has it, so the page renders immediately.
    placeholderData: () =>
      client.getQueryData(queries.sessions().queryKey)?.find((one) => one.id === id),
  });
  const isUnknown = session.error instanceof ApiError && session.error.status === 404;
  if (isUnknown || session.data === null) {
    return (
      <Page title="Agent">
        <Empty title="This agent does not exist.">
          It may have been deleted. <Link href="/">Go to the fleet</Link>
        </Empty>
      </Page>
    );
  }
  return <Loaded query={session}>{(data) => data && <Agent session={data} />}</Loaded>;
}

function Agent({ session }: { session: Session }) {
  const output = useOutput(session.id, !isOver(session.status));
  const questions = useQuestions();
  const [tab, choice, setTab] = useChoice('tab', 'output', 'View', tabs, true);
  useShortcut('d', 'Show output or changes', () => setTab(tab === 'output' ? 'changes' : 'output'));
  return (
    <Page
      title={session.name}
      above={
        <nav aria-label="Back">
          <Link href="/">Fleet</Link>
        </nav>
      }
      actions={<Controls session={session} />}
    >
      <div className="agent-status">
        <Status tone={sessionTones[session.status]}>{session.status}</Status>
        <span className="muted">
          since <Time at={session.status_since} />
        </span>
        {session.status_reason && !isOver(session.status) && <span>{session.status_reason}</span>}
        {session.last_error && <span className="status-bad">{session.last_error}</span>}
      </div>
      <QuestionPanel questions={questions.of(session.id)} />
      {choice}
      {tab === 'changes' ? (
        <Review session={session} />
      ) : (
        <div className="agent">
          <Panel title="Output" className="agent-output">
            <OutputView output={output} />
            <SendForm session={session} />
          </Panel>
          <div className="stack">
            <ExplainPanel session={session} lines={output.lines} />
            <Facts session={session} />
          </div>
        </div>
      )}
    </Page>
  );
}
