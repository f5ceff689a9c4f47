import type { DaemonSchema } from '@millrace/contract/daemon';
import { Link } from 'wouter';
import { baseName, unknown } from '../../parts/format.js';
import { Status } from '../../parts/status.js';
import { Time } from '../../parts/time.js';
import type { Column } from '../../parts/virtual-table.js';
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
  const whyOf = ({ id, status_reason }: Session) => questionsOf(id)[0]?.title ?? status_reason;
  return [
    {
      id: 'name',
      header: 'Agent',
      width: 'minmax(0, 3fr)',
      cell: (session) => (
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
      ),
    },
    {
      id: 'status',
      header: 'Status',
      width: '9rem',
      wideOnly: true,
      cell: ({ status }) => <Status tone={sessionTones[status]}>{status}</Status>,
    },
    {
      id: 'why',
      header: 'Why',
      width: 'minmax(0, 3fr)',
      wideOnly: true,
      cell: (session) => <span className="muted">{whyOf(session) ?? unknown}</span>,
    },
    {
      id: 'since',
      header: 'Since',
      width: '5.5rem',
      wideOnly: true,
      cell: ({ status_since }) => <Time at={status_since} />,
    },
    {
      id: 'backend',
      header: 'Backend',
      width: '5.5rem',
      wideOnly: true,
      cell: ({ backend, model }) => <span title={model ?? undefined}>{backend}</span>,
    },
    {
      id: 'where',
      header: 'Branch or directory',
      width: 'minmax(0, 2fr)',
      wideOnly: true,
      cell: ({ branch, repo, workdir }) => (
        <span className="muted" title={workdir}>
          {branch ?? `${baseName(repo ?? workdir)}/`}
        </span>
      ),
    },
    {
      id: 'context',
      header: 'Context',
      width: '7.5rem',
      narrowWidth: '4rem',
      cell: (session) => <ContextBar session={session} critical={critical} />,
    },
    {
      id: 'cost',
      header: 'Cost',
      width: '5rem',
      narrowWidth: '4rem',
      numeric: true,
      cell: (session) => costText(costOf(session)),
    },
  ];
}
