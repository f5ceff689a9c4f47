import type { Verdict } from '../../core/verdict.js';

/** Everything outside the coordinator that can change what it does next. */
export type DeliveryEvent =
  /**
   * The queue may have new work: a submit, a redrive, a resume, also on another server.
   * `handlers`: those that may have it; absent: any.
   */
  | { kind: 'submitted'; queue: string; handlers?: ReadonlySet<string> | undefined }
  /** The timer of the queue rang: a task falls due, a rate or a breaker allows more. */
  | { kind: 'due'; queue: string }
  /** The config, the pause, the allowlist or a secret of the queue changed. */
  | { kind: 'config_changed'; queue: string }
  /** A handler reported the end of its work. */
  | { kind: 'settled'; queue: string; verdict: Verdict; at: number }
  /** A lease ended before its attempt was settled, and the store has recorded that. */
  | { kind: 'lease_expired'; queue: string; verdict: Verdict; at: number }
  /** An operator cancelled tasks. */
  | { kind: 'cancelled'; queue: string; count: number }
  /** A task expired before it was claimed. */
  | { kind: 'task_expired'; queue: string }
  /**
   * The due times of all queues were read. `isFullScan`: cached state may be outdated, so every
   * queue with due tasks is claimed from.
   */
  | { kind: 'planned'; dueByQueue: ReadonlyMap<string, number>; isFullScan: boolean }
  /** A claim failed; the store is left alone for a while. */
  | { kind: 'store_away'; retryInMs: number }
  | { kind: 'store_back' }
  /** Claim nothing more. */
  | { kind: 'stop' };

export type Emit = (event: DeliveryEvent) => void;
