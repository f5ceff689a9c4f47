import type { QueueComponents } from '@millrace/contract/queue';
import type { WaitKind } from './flow.js';

/** A queue's config with all defaults filled in, with the field names of the contract. */
export type QueueConfig = Omit<
  QueueComponents['schemas']['QueueConfig'],
  'name' | 'paused' | 'version' | 'created_at' | 'updated_at'
>;

/** The current value of a secret, if it exists and the queue may use it. */
export type SecretLookup = (name: string, queue: string) => string | undefined;

export interface Queue {
  name: string;
  config: QueueConfig;
  paused: boolean;
  /** 1 for a new queue, one more with each config write. */
  version: number;
  /** Distinguishes a queue from a later one with the same name. */
  incarnation: string;
  createdAt: number;
  /** When the config was last written. */
  updatedAt: number;
}

export interface QueueCounts {
  pending: number;
  /** PENDING tasks that are not due yet. */
  delayed: number;
  inFlight: number;
  dead: number;
  /**
   * The earliest due time of a PENDING task, also in the future; null if there is none. A claim that
   * passes over an expired task may hide it here, until upkeep makes it DEAD.
   */
  oldestDueAt: number | null;
  /** PENDING tasks of flows by what they wait for; those that are not there are 0. */
  waits: Readonly<Partial<Record<WaitKind, number>>>;
}
