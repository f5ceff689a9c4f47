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
  /** The earliest due time of a PENDING task, also in the future; null if there is none. */
  oldestDueAt: number | null;
  /** PENDING tasks of flows by what they wait for; those that are not there are 0. */
  waits: Readonly<Partial<Record<WaitKind, number>>>;
}

/** What a config without `circuit_breaker` got before pull queues had none. */
const oldBreaker: QueueConfig['circuit_breaker'] = {
  enabled: true,
  failure_ratio: 0.7,
  min_requests: 10,
  window_ms: 30_000,
  open_ms: 30_000,
};

/** `isSet`: a person wrote it, although its values are the defaults. */
type StoredBreaker = QueueConfig['circuit_breaker'] & { isSet?: boolean };

/** The config to store. A pull queue has a circuit breaker only if the request names it. */
export function configToStore(config: QueueConfig, hasBreaker: boolean): QueueConfig {
  if (config.callback.protocol !== 'pull') return config;
  const { circuit_breaker: breaker } = config;
  const stored: StoredBreaker = hasBreaker
    ? { ...breaker, isSet: true }
    : { ...breaker, enabled: false };
  return { ...config, circuit_breaker: stored };
}

/** A stored config as it is used. The old default, which nobody set, means none on a pull queue. */
export function configInUse(config: QueueConfig): QueueConfig {
  const { isSet, ...breaker } = config.circuit_breaker as StoredBreaker;
  const names = Object.keys(oldBreaker) as (keyof typeof oldBreaker)[];
  const isOldDefault = names.every((name) => breaker[name] === oldBreaker[name]);
  const isUnset = config.callback.protocol === 'pull' && isOldDefault && isSet !== true;
  if (!isUnset && isSet === undefined) return config;
  return { ...config, circuit_breaker: isUnset ? { ...breaker, enabled: false } : breaker };
}
