import type { RowReader } from '@millrace/db';
import type { Queue } from '../../core/queue.js';
import type { Starts } from '../start-window.js';
import { kinds, nameKey, queueKey } from './keys.js';
import type { ReadyOrder } from './ready-lanes.js';

export interface StoredQueue extends Queue {
  /** What its tasks' keys begin with. */
  number: number;
}

/** What is kept for a queue apart from its config, because every claim and settle changes it. */
export interface Counters extends ReadyOrder {
  pending: number;
  inFlight: number;
  dead: number;
  starts: Starts;
  /** No scheduled task is due before this; null: none is scheduled. */
  nextDue: number | null;
  /** Groups are kept as FIFO: of each only the first task is ready. */
  fifo: boolean;
  /** The rows are being brought from one order to the other and have come to this key, in hex. */
  converting: string | null;
}

export const noCounters: Counters = {
  pending: 0,
  inFlight: 0,
  dead: 0,
  turns: {},
  starts: [],
  floors: {},
  lanes: 0,
  nextDue: null,
  fifo: false,
  converting: null,
};

export function readQueue(rows: RowReader, name: string): StoredQueue | undefined {
  const bytes = rows.get(nameKey(kinds.queue, name));
  return bytes && (JSON.parse(bytes.toString()) as StoredQueue);
}

export function readCounters(rows: RowReader, queue: number): Counters {
  const bytes = rows.get(queueKey(kinds.counters, queue));
  return bytes ? (JSON.parse(bytes.toString()) as Counters) : structuredClone(noCounters);
}

/** Without what is the store's own. */
export function toQueue(stored: StoredQueue): Queue {
  const { number: _number, ...queue } = stored;
  return queue;
}

export function encodeJson(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}
