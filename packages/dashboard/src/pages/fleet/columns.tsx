import type { DaemonSchema } from '@millrace/contract/daemon';
import { reasonOf } from '@millrace/contract/lists/daemon';
import { Link } from 'wouter';
import { baseName, unknown } from '../../parts/format.js';
import { Status } from '../../parts/status.js';
import { Time } from '../../parts/time.js';
import { column, type Column } from '../../parts/virtual-table.js';
import type { Questions } from '../../questions/api.js';
import { ContextBar } from '../../sessions/context-bar.js';
import { costText } from '../../sessions/cost.js';
import { sessionTones } from '../../sessions/status.js';

type Session = DaemonSchema<'Session'>;

/** `attempt 2, after 1`: the retries of a queue task are one row, with links to the earlier ones. */
export function Attempts({ session, earlier }: { session: Session; earlier: readonly Session[] }) {
  if (!session.task || (session.task.attempt === 1 && earlier.length === 0)) return null;
  return (
    <span className="muted over-link">
      {' '}
      attempt {session.task.attempt}
      {earlier.map(({ id, task }, at) => (
        <span key={id}>
          {at === 0 ? ', after ' : ' '}
          <Link href={`/agents/${id}`} aria-label={`Attempt ${task!.attempt} of ${session.name}`}>
            {task!.attempt}
          </Link>
        </span>
      ))}
    </span>
  );
}

export function fleetColumns(
  costOf: (session: Session) => DaemonSchema<'SpendRow'> | undefined,
  critical: number,
  questionsOf: Questions['of'],
  isNarrow: boolean,
  earlierOf: (session: Session) => readonly Session[],
): readonly Column<Session>[] {
  const whyOf = (session: Session) => questionsOf(session.id)[0]?.title ?? reasonOf(session);
  const wideOnly = true;
  const name = (session: Session) => (
    <>
      <Link href={`/agents/${session.id}`} className="row-link fleet-name">
        {session.name}
      </Link>
      <Attempts session={session} earlier={earlierOf(session)} />
      <span className="fleet-second">
        <Status tone={sessionTones[session.status]}>{session.status}</Status>
        <span className="muted"> · {session.backend}</span>
      </span>
      {isNarrow && <span className="fleet-second ellipsis muted">{whyOf(session)}</span>}
    </>
  );
  const place = ({ branch, repo, workdir }: Session) => (
    <span className="muted" title={workdir}>
      {branch ?? `${baseName(repo ?? workdir)}/`}
    </span>
  );
  return [
    column('Agent', 'minmax(10rem, 4fr)', name),
    column(
      'Status',
      '9rem',
      ({ status }) => <Status tone={sessionTones[status]}>{status}</Status>,
      { wideOnly },
    ),
    column(
      'Why',
      'minmax(6rem, 4fr)',
      (session) => <span className="muted">{whyOf(session) ?? unknown}</span>,
      { wideOnly },
    ),
    column('Since', '5.5rem', ({ status_since }) => <Time at={status_since} />, { wideOnly }),
    column(
      'Backend',
      '5.5rem',
      ({ backend, model }) => <span title={model ?? undefined}>{backend}</span>,
      { wideOnly },
    ),
    column('Branch or directory', 'minmax(8.5rem, 1fr)', place, { wideOnly }),
    column('Context', '7.5rem', (session) => <ContextBar {...{ session, critical }} />, {
      narrowWidth: '4rem',
    }),
    column('Cost', '4.5rem', (session) => costText(costOf(session)), {
      narrowWidth: '4rem',
      numeric: true,
    }),
  ];
}
