import type { RowReader } from '@millrace/engine';
import type { Queue } from '../../core/queue.js';
import type { Starts } from '../../core/start-window.js';
import { kinds, nameKey, queueKey } from './keys.js';
import type { ReadyOrder } from './ready-tasks.js';

export interface StoredQueue extends Queue {
  /** Prefix of the keys of its tasks. */
  number: number;
}

/** State of a queue that every claim and settlement changes; stored apart from the config. */
export interface Counters extends ReadyOrder {
  pending: number;
  inFlight: number;
  dead: number;
  /** Ids in the rows `listed`; absent in data of 0.1.0. */
  listed?: number;
  starts: Starts;
  /** No scheduled task is due before this; null: none is scheduled. */
  nextDue: number | null;
  /** FIFO ordering: only the head of each group is ready. */
  fifo: boolean;
  /** Progress of a change of ordering: the next key, in hex. */
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

/** Cache of decoded queues by name: configs are large, and every call reads one. */
const decoded = new Map<string, { bytes: Buffer; stored: StoredQueue; queue: Queue }>();
const maxDecoded = 1_000;

/** The stored queue. It is shared and must not be changed. */
export function readQueue(rows: RowReader, name: string): StoredQueue | undefined {
  return decodeQueue(rows, name)?.stored;
}

/** Like `readQueue`, without internal fields. */
export function readPlainQueue(rows: RowReader, name: string): Queue | undefined {
  return decodeQueue(rows, name)?.queue;
}

function decodeQueue(rows: RowReader, name: string) {
  const bytes = rows.get(nameKey(kinds.queue, name));
  if (!bytes) return undefined;
  const known = decoded.get(name);
  if (known?.bytes.equals(bytes)) return known;
  const stored = frozen(JSON.parse(bytes.toString()) as StoredQueue);
  // Copied: the bytes may be in memory of the database.
  const entry = { bytes: Buffer.from(bytes), stored, queue: Object.freeze(toQueue(stored)) };
  if (decoded.size >= maxDecoded) decoded.clear();
  decoded.set(name, entry);
  return entry;
}

function frozen<Value extends object>(value: Value): Value {
  for (const part of Object.values(value) as unknown[]) {
    if (typeof part === 'object' && part !== null) frozen(part);
  }
  return Object.freeze(value);
}

export function readCounters(rows: RowReader, queue: number): Counters {
  const bytes = rows.get(queueKey(kinds.counters, queue));
  return bytes ? (JSON.parse(bytes.toString()) as Counters) : structuredClone(noCounters);
}

/** Without internal fields. */
export function toQueue(stored: StoredQueue): Queue {
  const { number: _number, ...queue } = stored;
  return queue;
}

export function encodeJson(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}
