import type { CommitRow } from '../format/changes.js';
import { PendingWrites } from './overlay/pending.js';

/** One write and those who wait for it. */
export class Job {
  result: unknown = undefined;
  /** What it threw. */
  refusal: { error: unknown } | undefined = undefined;

  constructor(
    readonly run: () => unknown,
    readonly resolve: (value: unknown) => void,
    readonly reject: (reason: unknown) => void,
    /** On the monotonic clock. */
    readonly submittedAt: number,
    /** It takes commits back, and has a batch to itself. */
    readonly isCut: boolean,
  ) {}
}

/** Jobs that become one frame of the log. */
export interface Batch {
  writes: PendingWrites;
  /** In the order of their numbers, which have no gap. */
  commits: CommitRow[];
  isCut: boolean;
  /** It takes no more jobs. */
  isSealed: boolean;
  /** In the order in which they ran, those that threw included. */
  jobs: Job[];
  /** How many did not throw. */
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
