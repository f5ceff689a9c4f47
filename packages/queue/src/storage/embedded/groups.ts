import type { RowReader, RowWriter } from '@millrace/engine';
import {
  after,
  groupKey,
  groupStart,
  groupTimeKey,
  idOf,
  kinds,
  readyKey,
  timeOf,
} from './keys.js';
import { encodeJson } from './queue-rows.js';

/** The task of a FIFO group that may be claimed. */
interface GroupHead {
  priority: number;
  due: number;
  id: string;
}

/** Stored state of a group; absent if empty. */
export interface GroupState {
  inFlight: number;
  /** PENDING tasks that were claimed before. */
  retried: number;
  head: GroupHead | null;
}

type StoredGroup = [inFlight: number, retried: number, head: [number, number, string] | 0];

export function readGroup(rows: RowReader, queue: number, group: Buffer): GroupState {
  const bytes = rows.get(groupKey(queue, group));
  if (!bytes) return { inFlight: 0, retried: 0, head: null };
  const [inFlight, retried, head] = JSON.parse(bytes.toString()) as StoredGroup;
  return {
    inFlight,
    retried,
    head: head ? { priority: head[0], due: head[1], id: head[2] } : null,
  };
}

function writeGroup(rows: RowWriter, queue: number, group: Buffer, state: GroupState): void {
  const { inFlight, retried, head } = state;
  const key = groupKey(queue, group);
  if (inFlight === 0 && retried === 0 && !head) return rows.remove(key);
  const stored: StoredGroup = [inFlight, retried, head ? [head.priority, head.due, head.id] : 0];
  rows.put(key, encodeJson(stored));
}

/** State of the queue that a group needs. */
interface QueueOfGroup {
  stored: { number: number };
  counters: { fifo: boolean; lanes: number };
}

interface TouchedGroup {
  queue: QueueOfGroup;
  number: number;
  group: Buffer;
  state: GroupState;
}

/**
 * The groups that one step changes. In a FIFO queue only the head of a group is ready: none while
 * a task of the group is in flight, else the first that waits for a retry, else the first.
 */
export class TouchedGroups {
  readonly #groups = new Map<string, TouchedGroup>();

  constructor(private readonly rows: RowWriter) {}

  touch(queue: QueueOfGroup, group: Buffer): GroupState {
    const { number } = queue.stored;
    const name = `${number} ${group.toString('latin1')}`;
    let touched = this.#groups.get(name);
    if (!touched) {
      touched = { queue, number, group, state: readGroup(this.rows, number, group) };
      this.#groups.set(name, touched);
    }
    return touched.state;
  }

  /** Updates the head of each group. Reads everything first: reads between writes are slow. */
  write(): void {
    const heads = [...this.#groups.values()].map((touched) => this.#headOf(touched));
    let i = 0;
    for (const { queue, number, group, state } of this.#groups.values()) {
      const [before, head] = [state.head, heads[i++]!];
      if (queue.counters.fifo && !isSame(before, head)) {
        if (before) {
          this.rows.remove(readyKey(number, before.priority, group, before.due, before.id));
        }
        if (head) {
          queue.counters.lanes |= 1 << head.priority;
          this.rows.put(readyKey(number, head.priority, group, head.due, head.id), noBytes);
        }
      }
      state.head = head;
      writeGroup(this.rows, number, group, state);
    }
    this.#groups.clear();
  }

  #headOf({ queue, number, group, state }: TouchedGroup): GroupHead | null {
    if (!queue.counters.fifo || state.inFlight > 0) return null;
    if (state.retried === 0) {
      const [first] = this.#first(kinds.lined, number, group);
      return first ? headFrom(first.key, first.value) : null;
    }
    const [retried] = this.#first(kinds.retried, number, group);
    if (!retried) throw new Error('A group counts a retried task that does not exist');
    const [due, id] = [timeOf(retried.key), idOf(retried.key)];
    const key = groupTimeKey(kinds.lined, number, group, due, id);
    const priority = this.rows.get(key);
    return priority ? headFrom(key, priority) : null;
  }

  #first(kind: typeof kinds.lined | typeof kinds.retried, queue: number, group: Buffer) {
    const start = groupStart(kind, queue, group);
    return [...this.rows.range({ start, end: after(start), limit: 1 })];
  }
}

const noBytes = Buffer.alloc(0);

function headFrom(key: Buffer, value: Buffer): GroupHead {
  return { priority: value[0]!, due: timeOf(key), id: idOf(key) };
}

function isSame(a: GroupHead | null, b: GroupHead | null): boolean {
  return a?.id === b?.id && a?.due === b?.due;
}
