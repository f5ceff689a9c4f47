import type { DaemonSchema } from '@millrace/contract/daemon';

type Pipeline = DaemonSchema<'Pipeline'>;
export type ColumnName = DaemonSchema<'BoardColumnName'>;

export const columnTexts: Readonly<Record<ColumnName, { title: string; empty: string }>> = {
  queued: { title: 'Queued', empty: 'Nothing waits to start.' },
  working: { title: 'Working', empty: 'No agent works.' },
  needs_you: { title: 'Needs you', empty: 'No agent waits for you.' },
  review: { title: 'Review', empty: 'Nothing to review.' },
  done: { title: 'Done', empty: 'Nothing is done yet.' },
};

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
