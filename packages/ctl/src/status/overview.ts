import type { QueueSchema } from '@millrace/contract/queue';

/** What can be told of any server. */
export interface PartState {
  readonly up: boolean;
  /** Where it was looked for; null when nothing was found to look at. */
  readonly address: string | null;
  /** Null when it does not run or does not say. */
  readonly version: string | null;
  /** Why it does not run, or why it does not tell more. */
  readonly reason: string | null;
  /** What it asks callers for; `none` where every local user has full access. */
  readonly auth?: string;
}

/** All of Millrace at a glance. */
export interface Overview {
  /** Whether all three run. */
  readonly ok: boolean;
  readonly db: PartState & {
    readonly role: string | null;
    readonly collections: number | null;
    readonly records: number | null;
    /** The last commit. */
    readonly seq: number | null;
    /** Those that are connected. */
    readonly followers: number | null;
  };
  readonly queue: PartState & {
    readonly queues: number | null;
    readonly totals: QueueTotals | null;
  };
  readonly daemon: PartState & {
    /** How many agents have each status; a status that none has is left out. */
    readonly agents: Partial<Record<string, number>> | null;
  };
}

export interface QueueTotals {
  readonly pending: number;
  readonly in_flight: number;
  readonly dlq_depth: number;
  readonly oldest_pending_age_ms: number;
  readonly paused: number;
}

export function queueTotals(queues: QueueSchema<'QueueList'>): QueueTotals {
  const summaries = queues.map(({ summary }) => summary);
  const sum = (count: (summary: (typeof summaries)[number]) => number) =>
    summaries.reduce((total, summary) => total + count(summary), 0);
  return {
    pending: sum(({ pending }) => pending),
    in_flight: sum(({ in_flight: running }) => running),
    dlq_depth: sum(({ dlq_depth: dead }) => dead),
    oldest_pending_age_ms: Math.max(0, ...summaries.map((each) => each.oldest_pending_age_ms)),
    paused: summaries.filter(({ paused }) => paused).length,
  };
}
