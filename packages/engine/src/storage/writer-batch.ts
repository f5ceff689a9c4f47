import type { CommitRow } from '../format/changes.js';
import { PendingWrites } from './overlay/pending.js';

/** One write and its promise. */
export class Job {
  result: unknown = undefined;
  /** The error it threw. */
  refusal: { error: unknown } | undefined = undefined;

  constructor(
    readonly run: () => unknown,
    readonly resolve: (value: unknown) => void,
    readonly reject: (reason: unknown) => void,
    /** On the monotonic clock. */
    readonly submittedAt: number,
    /** It rolls back commits, and has its own batch. */
    readonly isCut: boolean,
  ) {}
}

/** Jobs that become one frame of the log. */
export interface Batch {
  writes: PendingWrites;
  /** In order of their numbers, without a gap. */
  commits: CommitRow[];
  isCut: boolean;
  /** It accepts no more jobs. */
  isSealed: boolean;
  /** In the order in which they ran, including those that threw. */
  jobs: Job[];
  /** Number of jobs that did not throw. */
  done: number;
  isSettled: boolean;
}

export function newBatch(): Batch {
  return {
    writes: new PendingWrites(),
    commits: [],
    isCut: false,
    isSealed: false,
    jobs: [],
    done: 0,
    isSettled: false,
  };
}
