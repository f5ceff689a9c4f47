import type { DaemonSchema } from '@millrace/contract/daemon';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { daemon } from '../../api/client.js';
import { useAction } from '../../parts/action.js';
import { Button } from '../../parts/controls.js';
import { dollars, duration, unknown } from '../../parts/format.js';
import { Fact } from '../../parts/page.js';
import { Status, type Tone } from '../../parts/status.js';
import { sessionDiff } from '../agent/review/api.js';
import { DiffView } from '../agent/review/diff-view.js';
import '../agent/review/review.css';

type Plan = DaemonSchema<'Plan'>;
type Task = DaemonSchema<'PlanTask'>;
type Entry = DaemonSchema<'RaceEntry'>;

export const planTones: Readonly<Record<Plan['status'] | Task['status'], Tone>> = {
  pending: 'calm',
  ready: 'warn',
  running: 'busy',
  waiting: 'warn',
  done: 'good',
  failed: 'bad',
  skipped: 'off',
  canceled: 'off',
};

/** The results of a race side by side: changes, checks, dollars and time. */
export function RaceView({ plan, task }: { plan: Plan; task: Task }) {
  const pick = useAction({
    run: (sessionId: string) =>
      daemon.call('pickSession', {
        path: { id: plan.id, key: task.key },
        body: { session_id: sessionId },
      }),
    done: () => `Picked for ${task.key}.`,
    refresh: ['plans'],
  });
  const isOpen = task.waiting_for === 'pick';
  return (
    <div className="race" role="group" aria-label={`Race of ${task.key}`}>
      {(task.race ?? []).map((entry, at) => (
        <section
          key={entry.session_id ?? at}
          className={entry.picked ? 'race-entry race-picked' : 'race-entry'}
          aria-label={`${entry.backend} ${at + 1}`}
        >
          <div className="row">
            <h4>
              {at + 1}. {entry.backend}
            </h4>
            <Status tone={planTones[entry.status]}>{entry.picked ? 'picked' : entry.status}</Status>
            {entry.session_id && <Link href={`/agents/${entry.session_id}`}>Agent {at + 1}</Link>}
            {isOpen && entry.status === 'done' && entry.session_id && (
              <Button
                className="primary small"
                disabled={pick.isDisabled}
                onClick={() => pick.mutate(entry.session_id!)}
              >
                Pick {at + 1}
              </Button>
            )}
          </div>
          <Facts entry={entry} />
          {entry.error && <p className="field-error">{entry.error}</p>}
          {isOpen && entry.session_id && entry.status === 'done' && <Diff id={entry.session_id} />}
        </section>
      ))}
    </div>
  );
}

function Facts({
  entry: { verify, diff, exact_usd: usd, duration_ms: ms, branch },
}: {
  entry: Entry;
}) {
  const size = diff ? `${diff.files} files, +${diff.additions} −${diff.deletions}` : unknown;
  return (
    <dl className="race-facts">
      <Fact name="Checks">
        <Checks verify={verify} />
      </Fact>
      <Fact name="Changes">{size}</Fact>
      <Fact name="Cost">{dollars(usd)}</Fact>
      <Fact name="Time">{duration(ms)}</Fact>
      <Fact name="Branch" className="mono">
        {branch ?? unknown}
      </Fact>
    </dl>
  );
}

function Diff({ id }: { id: string }) {
  const { data } = useQuery(sessionDiff(id, '', ''));
  if (!data || data.files.length === 0) return null;
  return <DiffView files={data.files} layout="unified" selected="" />;
}

export function Checks({ verify }: { verify: Task['verify'] }) {
  if (!verify) return unknown;
  return (
    <Status tone={verify.passed ? 'good' : 'bad'}>{verify.passed ? 'passed' : 'failed'}</Status>
  );
}
