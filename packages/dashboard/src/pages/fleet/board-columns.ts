import type { DaemonSchema } from '@millrace/contract/daemon';

type Session = DaemonSchema<'Session'>;
type Standing = DaemonSchema<'BranchStanding'>;
type Pipeline = DaemonSchema<'Pipeline'>;

export type ColumnId = 'queued' | 'working' | 'needs_you' | 'review' | 'done';

export const boardColumns: readonly { id: ColumnId; title: string; empty: string }[] = [
  { id: 'queued', title: 'Queued', empty: 'Nothing waits to start.' },
  { id: 'working', title: 'Working', empty: 'No agent works.' },
  { id: 'needs_you', title: 'Needs you', empty: 'No agent waits for you.' },
  { id: 'review', title: 'Review', empty: 'Nothing to review.' },
  { id: 'done', title: 'Done', empty: 'Nothing is done yet.' },
];

interface BoardFacts {
  standingOf: (sessionId: string) => Pick<Standing, 'ahead' | 'merged'> | undefined;
  hasQuestion: (sessionId: string) => boolean;
}

/** The column of a session. Work that is finished but not merged waits for a review. */
export function columnOf(session: Session, { standingOf, hasQuestion }: BoardFacts): ColumnId {
  if (hasQuestion(session.id)) return 'needs_you';
  switch (session.status) {
    case 'spawning':
      return 'queued';
    case 'working':
      return 'working';
    case 'idle':
      return 'review';
    case 'done': {
      const standing = standingOf(session.id);
      return standing && standing.merged === false && standing.ahead !== 0 ? 'review' : 'done';
    }
    default:
      return 'needs_you';
  }
}

/** Work that has no session yet. */
export interface WaitingWork {
  id: string;
  title: string;
  note: string;
  href: string;
}

/** Jobs of running pipelines that wait for other jobs. */
export function waitingJobs(pipelines: readonly Pipeline[]): WaitingWork[] {
  return pipelines
    .filter(({ status }) => status === 'running')
    .flatMap(({ id, name, jobs }) =>
      jobs
        .filter(({ status, session_id }) => status === 'pending' && session_id === null)
        .map((job) => ({
          id: `${id} ${job.id}`,
          title: job.id,
          note: `Job of ${name}${job.depends_on.length > 0 ? `, after ${job.depends_on.join(', ')}` : ''}`,
          href: `/pipelines/${id}`,
        })),
    );
}
