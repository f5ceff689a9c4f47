import type { RowReader } from '@millrace/engine';

/**
 * The rows of the store. The first byte says what a row is; all keys sort as what they stand for.
 * A queue goes by a number that no later queue of its name has; a group key is written so that
 * none is the beginning of another, and tasks without one come first.
 *
 *   meta       name
 *   queue      name                                        config, pause, number
 *   counters   queue                                       how many tasks of which status, turns
 *   task       id                                          the task, or its tombstone
 *   payload    id                                          a payload too large for the task's row
 *   attempt    id | number                                 one attempt of the history
 *   ready      queue | 9 - priority | group | due | id     may be claimed now
 *   scheduled  queue | due | id                            PENDING and not yet seen to be due
 *   lined      queue | group | due | id                    due, in a FIFO group
 *   retried    queue | group | due | id                    PENDING after a claim, in a group
 *   group      queue | group                               what is in flight, who is first
 *   lease      end | first id                              ids of tasks that are IN_FLIGHT
 *   expiry     time | id                                   PENDING with an expiry
 *   created    queue | time                                how many PENDING tasks are of this time
 *   done       queue | time | first id                     ids of tasks that SUCCEEDED
 *   dead       queue | time | id                           DEAD
 *   tombstone  time | id                                   tombstones by age
 *   deleted    queue                                       a deleted queue with tasks still to go
 *   audit      seq                                         the audit log
 *   unique     queue | key                                 who holds a unique key, until when
 *   uniqueEnd  time | queue | key                          unique keys by the end of their time
 *   result     id                                          what came of a task
 *   record     queue | kind | name                         body of a schedule or a job
 *   state      queue | kind | name                         its state
 *   listed     queue | creation | first id                 ids of all tasks that are not deleted
 *   history    queue | step | time | instance              what happened in the queue
 *   totals     queue                                       the same since it was created
 *   retained   time | id                                   finished tasks by the end of their own retention
 *   flow       id | kind | key                             steps, signals and links of a task
 *   event      number of its first event                   what happened to tasks in one commit
 */
export const kinds = {
  meta: 1,
  queue: 2,
  counters: 3,
  task: 4,
  payload: 5,
  attempt: 6,
  ready: 7,
  scheduled: 8,
  lined: 9,
  retried: 10,
  group: 11,
  lease: 12,
  expiry: 13,
  created: 14,
  done: 15,
  dead: 16,
  tombstone: 17,
  deletedQueue: 18,
  audit: 19,
  record: 40,
  recordState: 41,
  listed: 20,
  unique: 21,
  uniqueEnd: 22,
  result: 23,
  event: 24,
  retained: 25,
  history: 42,
  historyTotals: 43,
  flow: 44,
} as const;

export type Kind = (typeof kinds)[keyof typeof kinds];

export const idLength = 26;
const timeLength = 6;
/** The latest time that a key can encode. */
export const latestTime = 2 ** 48 - 1;

export function nameKey(kind: Kind, name: string): Buffer {
  return Buffer.concat([Buffer.of(kind), Buffer.from(name)]);
}

export function idKey(kind: Kind, id: string): Buffer {
  const key = Buffer.allocUnsafe(1 + idLength);
  key[0] = kind;
  key.write(id, 1, 'latin1');
  return key;
}

export function attemptKey(id: string, number: number): Buffer {
  const key = Buffer.allocUnsafe(1 + idLength + 4);
  key[0] = kinds.attempt;
  key.write(id, 1, 'latin1');
  key.writeUInt32BE(number, 1 + idLength);
  return key;
}

export function queueKey(kind: Kind, queue: number): Buffer {
  const key = Buffer.allocUnsafe(5);
  key[0] = kind;
  key.writeUInt32BE(queue, 1);
  return key;
}

export function groupKey(queue: number, group: Buffer): Buffer {
  const key = Buffer.allocUnsafe(5 + group.length);
  key[0] = kinds.group;
  key.writeUInt32BE(queue, 1);
  key.set(group, 5);
  return key;
}

/** `kind | time | id`, or a bound before all ids of that time. */
export function timeKey(kind: Kind, time: number, id = ''): Buffer {
  const key = Buffer.allocUnsafe(1 + timeLength + id.length);
  key[0] = kind;
  writeTime(key, time, 1);
  key.write(id, 1 + timeLength, 'latin1');
  return key;
}

/** `kind | queue | time | id`, or a bound before all ids of that time. */
export function queueTimeKey(kind: Kind, queue: number, time: number, id = ''): Buffer {
  const key = Buffer.allocUnsafe(5 + timeLength + id.length);
  key[0] = kind;
  key.writeUInt32BE(queue, 1);
  writeTime(key, time, 5);
  key.write(id, 5 + timeLength, 'latin1');
  return key;
}

/** `ready`. */
export function readyKey(
  queue: number,
  priority: number,
  group: Buffer,
  due: number,
  id: string,
): Buffer {
  const key = Buffer.allocUnsafe(6 + group.length + timeLength + idLength);
  key[0] = kinds.ready;
  key.writeUInt32BE(queue, 1);
  key[5] = 9 - priority;
  key.set(group, 6);
  writeTime(key, due, 6 + group.length);
  key.write(id, 6 + group.length + timeLength, 'latin1');
  return key;
}

/** Where the ready tasks of a priority begin; of 10: where those of the whole queue do. */
export function readyStart(queue: number, priority: number): Buffer {
  const key = Buffer.allocUnsafe(6);
  key[0] = kinds.ready;
  key.writeUInt32BE(queue, 1);
  key[5] = 9 - Math.min(priority, 9);
  return key;
}

export function readyGroup(key: Buffer): Buffer {
  return key.subarray(6, key.length - timeLength - idLength);
}

export function readyPriority(key: Buffer): number {
  return 9 - key[5]!;
}

/** `lined` and `retried`. */
export function groupTimeKey(
  kind: Kind,
  queue: number,
  group: Buffer,
  due: number,
  id: string,
): Buffer {
  const key = Buffer.allocUnsafe(5 + group.length + timeLength + idLength);
  key[0] = kind;
  key.writeUInt32BE(queue, 1);
  key.set(group, 5);
  writeTime(key, due, 5 + group.length);
  key.write(id, 5 + group.length + timeLength, 'latin1');
  return key;
}

export function groupStart(kind: Kind, queue: number, group: Buffer): Buffer {
  const key = Buffer.allocUnsafe(5 + group.length);
  key[0] = kind;
  key.writeUInt32BE(queue, 1);
  key.set(group, 5);
  return key;
}

export function auditKey(seq: number): Buffer {
  return timeKey(kinds.audit, seq);
}

/** The id and the time that a key ends with. */
export function idOf(key: Buffer): string {
  return key.toString('latin1', key.length - idLength);
}

export function timeOf(key: Buffer): number {
  return key.readUIntBE(key.length - idLength - timeLength, timeLength);
}

/** The time of a key that ends with it. */
export function lastTimeOf(key: Buffer): number {
  return key.readUIntBE(key.length - timeLength, timeLength);
}

/** The first key after all that begin with these bytes. */
export function after(prefix: Buffer): Buffer {
  const key = Buffer.from(prefix);
  for (let i = key.length - 1; i >= 0; i--) {
    if (key[i]! < 0xff) {
      key[i]!++;
      return key.subarray(0, i + 1);
    }
  }
  throw new RangeError('Nothing comes after these bytes');
}

/** The greatest key below this one. */
export function keyBefore(key: Buffer): Buffer {
  const before = Buffer.concat([key, Buffer.alloc(1)]);
  // The preceding bytes of the same length, and every key that starts with them.
  for (let i = key.length - 1; i >= 0; i--) {
    if (before[i]! > 0) {
      before[i]!--;
      before.fill(0xff, i + 1);
      return before;
    }
  }
  return Buffer.of(0);
}

const noGroup = Buffer.of(0);

/** A group key inside a key: `1 | text | 0`, or `0` for none. Texts have no zero. */
export function groupBytes(group: string | null): Buffer {
  if (group === null) return noGroup;
  const length = Buffer.byteLength(group);
  const bytes = Buffer.allocUnsafe(length + 2);
  bytes[0] = 1;
  bytes.write(group, 1);
  bytes[length + 1] = 0;
  return bytes;
}

export function isGrouped(group: Buffer): boolean {
  return group[0] === 1;
}

function writeTime(key: Buffer, time: number, at: number): void {
  const whole = time < 0 ? 0 : time > latestTime ? latestTime : Math.floor(time);
  key.writeUIntBE(whole, at, timeLength);
}

export function firstOf(rows: RowReader, kind: Kind, queue: number): Buffer | undefined {
  const start = queueKey(kind, queue);
  for (const { key } of rows.range({ start, end: after(start), limit: 1 })) return key;
  return undefined;
}

/** Time of the first row of a kind that is sorted by time. */
export function firstTime(rows: RowReader, kind: Kind): number | undefined {
  for (const { key } of rows.range({
    start: Buffer.of(kind),
    end: Buffer.of(kind + 1),
    limit: 1,
  })) {
    return timeOf(key);
  }
  return undefined;
}
