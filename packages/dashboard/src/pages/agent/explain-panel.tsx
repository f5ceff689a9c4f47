import type { DaemonSchema } from '@millrace/contract/daemon';
import { daemon } from '../../api/client.js';
import { useAction } from '../../parts/action.js';
import { Button } from '../../parts/controls.js';
import { Panel } from '../../parts/page.js';
import { useGuardSettings } from '../../sessions/settings.js';
import { explainSession } from './explain-session.js';

type Session = DaemonSchema<'Session'>;

/** Explains the status of an agent from its record and, on request, with a model. */
export function ExplainPanel({ session, lines }: { session: Session; lines: readonly string[] }) {
  const settings = useGuardSettings();
  const think = useAction({
    run: () => daemon.call('think', { body: { prompt: promptOf(session, lines) } }),
  });
  return (
    <Panel title="Explain">
      <dl className="explain">
        {explainSession(session, settings).map(({ question, answer }) => (
          <div key={question}>
            <dt>{question}</dt>
            <dd>{answer}</dd>
          </div>
        ))}
      </dl>
      <div className="panel-body stack">
        <Button
          disabled={lines.length === 0}
          action={think}
          title="Sends the last lines of output to a free or local backend, never to a paid one"
        >
          {think.isPending ? 'Waiting for the model' : 'Ask a free or local model'}
        </Button>
        {think.data && <Answer result={think.data} />}
      </div>
    </Panel>
  );
}

function Answer({ result }: { result: DaemonSchema<'ThinkResult'> }) {
  if (!result.degraded && result.text !== null) {
    return (
      <div role="status">
        <p className="explain-text">{result.text}</p>
        <p className="muted">by {result.backend}</p>
      </div>
    );
  }
  return (
    <div role="status">
      <p>No free or local backend responded.</p>
      <ul className="muted">
        {result.tried.map(({ id, outcome, reason }) => (
          <li key={id}>
            {id}: {reason ?? outcome}
          </li>
        ))}
      </ul>
      <p className="muted">Start a local model, or set the tier of a backend to free.</p>
    </div>
  );
}

function promptOf({ name, prompt, status }: Session, lines: readonly string[]): string {
  return [
    'Below is the end of the output of a coding agent. In at most three plain sentences, say what',
    'it is doing, whether it is stuck, and whether it needs a person.',
    `Agent: ${name}. Status: ${status}. Its task: ${prompt.slice(0, 2000)}`,
    'Output:',
    ...lines.slice(-80).map((line) => line.slice(0, 400)),
  ].join('\n');
}
