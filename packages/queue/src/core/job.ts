/** A redrive or purge that runs in the background. */
export interface JobDefinition {
  action: 'redrive' | 'purge';
  /** The body of the request, for the API and the audit log. */
  selector: Readonly<Record<string, unknown>>;
  /** What the selector means. */
  target: { ids: readonly string[] } | { filter: JobFilter };
  /** Redrive: milliseconds between the starts of two tasks. */
  gapMs: number;
  /** A redrive leaves the tasks that died of these as they are. */
  withDependents?: boolean | undefined;
  /** A redrive drops this step and those after it; null: all. */
  fromStep?: string | null | undefined;
  /** Who created it. */
  by: string;
}

/** As in the storage port. */
export interface JobFilter {
  errorType?: string | undefined;
  handlerRef?: string | undefined;
  httpStatus?: number | undefined;
  diedFrom?: number | undefined;
  diedBefore?: number | undefined;
}

export type JobStatus = 'running' | 'done' | 'cancelled' | 'failed';

export interface JobState {
  status: JobStatus;
  count: number;
  finishedAt: number | null;
  /** Where the next step continues; null: at the start. */
  after: { deadAt: number; id: string } | null;
  /** No task is left; the end is still to be recorded. */
  isExhausted: boolean;
  /** The server that works on it, until this time. */
  owner: string | null;
  ownedUntil: number;
}

export const newJobState: JobState = {
  status: 'running',
  count: 0,
  finishedAt: null,
  after: null,
  isExhausted: false,
  owner: null,
  ownedUntil: 0,
};

export function endedJob(
  state: JobState,
  status: Exclude<JobStatus, 'running'>,
  now: number,
): JobState {
  return { ...state, status, finishedAt: now, owner: null, ownedUntil: 0 };
}

/** The audit record of the start of a job, or with a count of its end. */
export function jobAct(
  { queue, key }: { queue: string; key: string },
  { action, selector, by }: JobDefinition,
  count: number | null,
) {
  return { principal: by, action, queue, selector: { ...selector, job: key }, count };
}
