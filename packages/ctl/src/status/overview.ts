import type { QueueSchema } from '@millrace/contract/queue';
import type { ConnectorState } from './connectors.js';

/** Fields of every server. */
export interface PartState {
  readonly up: boolean;
  /** Its address; null if none was found. */
  readonly address: string | null;
  /** Null if it is not running or does not report it. */
  readonly version: string | null;
  /** Why it is not running, or why it reports no more. */
  readonly reason: string | null;
  /** Its auth setting; `none` means that every local user has full access. */
  readonly auth?: string;
}

/** The status of all servers. */
export interface Overview {
  /** Whether all three are running. */
  readonly ok: boolean;
  readonly db: PartState & {
    readonly role: string | null;
    readonly collections: number | null;
    readonly records: number | null;
    /** Last commit. */
    readonly seq: number | null;
    /** Connected followers. */
    readonly followers: number | null;
    /** Null if there are none or they could not be read. */
    readonly connectors: readonly ConnectorState[] | null;
  };
  readonly queue: PartState & {
    /** Its gRPC address; null if it has none or `ctl up` on this machine does not run it. */
    readonly grpc_address: string | null;
    readonly queues: number | null;
    readonly totals: QueueTotals | null;
  };
  readonly daemon: PartState & {
    /** Number of agents by status; statuses without agents are missing. */
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
