import { type RowReader, verify, type VerifyReport } from '@millrace/engine';
import {
  attemptKey,
  groupBytes,
  groupKey,
  groupTimeKey,
  idKey,
  idLength,
  idOf,
  isGrouped,
  kinds,
  queueTimeKey,
  readyGroup,
  readyKey,
  readyPriority,
  timeKey,
  timeOf,
} from './keys.js';
import { attemptsApart, decodeTask, isTombstone, type StoredTask } from './task-codec.js';
import { allFlowRows } from './flow-rows.js';
import { idsIn, readGroup } from './indexes.js';
import { isListed } from './upkeep.js';
import { readCounters, type Counters, type StoredQueue, queues } from './queue-state.js';

export interface TaskVerifyReport extends VerifyReport {
  queues: number;
  tasks: number;
}

/**
 * Verifies the embedded store in a directory that no process has open: its file, and that the tasks,
 * their indexes and the counters of the queues match. It takes about 200 bytes of memory per task.
 */
export async function verifyTasks(directory: string): Promise<TaskVerifyReport> {
  let found = { queues: 0, tasks: 0 };
  const report = await verify(directory, {
    rows: (rows) => {
      const { queues, tasks, problems } = new Inspection(rows);
      found = { queues, tasks };
      return problems;
    },
  });
  return { ...report, ...found };
}

/**
 * Finds inconsistencies in the rows of an embedded store: computes the expected index rows from
 * the tasks and compares them with the stored rows.
 */
export function storeProblems(rows: RowReader): string[] {
  return new Inspection(rows).problems;
}

interface Tally {
  queue: StoredQueue;
  counters: Counters;
  pending: number;
  inFlight: number;
  dead: number;
  listed: number;
  waits: number;
  created: Map<number, number>;
  groups: Map<string, { inFlight: number; retried: StoredTask[]; waiting: StoredTask[] }>;
}

/** Kinds whose rows all belong to tasks. */
const taskKinds: readonly number[] = [
  kinds.payload,
  kinds.attempt,
  kinds.ready,
  kinds.scheduled,
  kinds.lined,
  kinds.retried,
  kinds.group,
  kinds.expiry,
  kinds.created,
  kinds.dead,
  kinds.tombstone,
];
/** Those that change while the order of a queue is converted. */
const orderKinds: readonly number[] = [kinds.ready, kinds.lined, kinds.retried, kinds.group];

class Inspection {
  readonly problems: string[] = [];
  readonly #tallies = new Map<number, Tally>();
  tasks = 0;
  /** How many rows of each kind there should be. */
  readonly #expected = new Map<number, number>();
  #isConverting = false;
  /** Tasks and flows that have rows. */
  readonly #owned = new Set<string>();
  /** Ids by the lists they are in. */
  readonly #leased = new Map<string, string>();
  readonly #done = new Map<string, number>();
  readonly #listed = new Map<string, string>();

  constructor(private readonly rows: RowReader) {
    for (const queue of queues(rows)) this.#addQueue(queue);
    this.#readLists();
    for (const { key, value } of this.#rowsOf(kinds.task)) this.#task(idOf(key), value);
    for (const tally of this.#tallies.values()) this.#tally(tally);
    for (const kind of taskKinds) this.#countRows(kind);
    for (const { key } of this.#rowsOf(kinds.flow)) {
      const owner = key.toString('latin1', 1, 1 + idLength);
      if (!this.#owned.has(owner)) this.#say(`row ${show(key)} belongs to no task`);
    }
    for (const id of this.#leased.keys()) this.#say(`${id} has a lease and is not in flight`);
    for (const id of this.#done.keys()) this.#say(`${id} is listed as done and is not`);
    for (const id of this.#listed.keys()) this.#say(`${id} is listed and does not exist`);
  }

  get queues(): number {
    return this.#tallies.size;
  }

  /** All expected rows are there, so others are too many. */
  #countRows(kind: number): void {
    if (this.#isConverting && orderKinds.includes(kind)) return;
    let count = -(this.#expected.get(kind) ?? 0);
    for (const _ of this.#rowsOf(kind)) count++;
    if (count > 0) this.#say(`${count} rows of the kind ${nameOf(kind)} are too many`);
  }

  #addQueue(queue: StoredQueue): void {
    this.#tallies.set(queue.number, {
      queue,
      counters: readCounters(this.rows, queue.number),
      pending: 0,
      inFlight: 0,
      dead: 0,
      listed: 0,
      waits: 0,
      created: new Map(),
      groups: new Map(),
    });
  }

  #readLists(): void {
    for (const { key, value } of this.#rowsOf(kinds.lease)) {
      for (const id of idsIn(value)) {
        if (this.#leased.has(id)) this.#say(`${id} has two leases`);
        this.#leased.set(id, `${timeOf(key)} ${idOf(key)}`);
      }
    }
    for (const { key, value } of this.#rowsOf(kinds.listed)) {
      for (const id of idsIn(value)) {
        if (this.#listed.has(id)) this.#say(`${id} is listed twice`);
        this.#listed.set(id, `${key.readUInt32BE(1)} ${timeOf(key)}`);
      }
    }
    for (const { key, value } of this.#rowsOf(kinds.done)) {
      for (const id of idsIn(value)) {
        if (this.#done.has(id)) this.#say(`${id} is twice done`);
        this.#done.set(id, timeOf(key));
      }
    }
  }

  #task(id: string, bytes: Buffer): void {
    this.tasks++;
    const task = decodeTask(id, bytes);
    if (isTombstone(task)) return this.#expect(timeKey(kinds.tombstone, task.purgedAt, id));
    const tally = this.#tallies.get(task.queueNumber);
    if (!tally) return this.#say(`${id} has no queue`);
    if (task.payload === undefined) this.#expect(idKey(kinds.payload, id));
    for (const number of attemptsApart(task)) this.#expect(attemptKey(id, number));
    const { row } = task;
    tally.listed += this.#listed.has(id) ? 1 : 0;
    const place = `${task.queueNumber} ${row.createdAt}`;
    const isMissing = isListed(this.rows) && this.#listed.get(id) !== place;
    if (isMissing) this.#say(`${id} is not listed at ${place}`);
    this.#listed.delete(id);
    if (row.flow) for (const each of allFlowRows(this.rows, id, row.flow)) this.#owned.add(each.id);
    if (row.status === 'PENDING') this.#pending(tally, task);
    else if (row.status === 'IN_FLIGHT') this.#inFlight(tally, task);
    else if (row.status === 'DEAD') {
      tally.dead++;
      this.#expect(queueTimeKey(kinds.dead, task.queueNumber, row.deadAt!, id));
    } else {
      if (this.#done.get(id) !== row.completedAt) this.#say(`${id} is not listed as done`);
      this.#done.delete(id);
    }
  }

  #pending(tally: Tally, task: StoredTask): void {
    const { row, queueNumber } = task;
    tally.pending++;
    tally.created.set(row.createdAt, (tally.created.get(row.createdAt) ?? 0) + 1);
    if (row.flow?.wait) tally.waits++;
    if (row.expiresAt !== null) this.#expect(timeKey(kinds.expiry, row.expiresAt, row.id));
    const group = groupBytes(row.groupKey);
    const due = row.dueAt!;
    const { fifo, converting, nextDue } = tally.counters;
    if (converting !== null) {
      this.#isConverting = true;
      return;
    }
    const scheduled = queueTimeKey(kinds.scheduled, queueNumber, due, row.id);
    const isScheduled = this.rows.get(scheduled) !== undefined;
    if (isScheduled && !(nextDue !== null && nextDue <= due)) this.#say('nextDue is too late');
    if (isScheduled) this.#expect(scheduled);
    if (!isGrouped(group)) {
      if (!isScheduled) this.#expect(readyKey(queueNumber, row.priority, group, due, row.id));
      return;
    }
    const state = this.#groupOf(tally, group);
    if (row.started) {
      state.retried.push(task);
      this.#expect(groupTimeKey(kinds.retried, queueNumber, group, due, row.id));
    }
    if (isScheduled) return;
    state.waiting.push(task);
    if (fifo) this.#expect(groupTimeKey(kinds.lined, queueNumber, group, due, row.id));
    else this.#expect(readyKey(queueNumber, row.priority, group, due, row.id));
  }

  #inFlight(tally: Tally, task: StoredTask): void {
    const { row } = task;
    tally.inFlight++;
    const place = `${row.lease!.expiresAt} ${task.leaseList}`;
    if (this.#leased.get(row.id) !== place) this.#say(`${row.id} has no lease at ${place}`);
    this.#leased.delete(row.id);
    const group = groupBytes(row.groupKey);
    if (isGrouped(group)) this.#groupOf(tally, group).inFlight++;
  }

  #tally(tally: Tally): void {
    const { queue, counters, pending, inFlight, dead, listed, created } = tally;
    const counted = JSON.stringify([pending, inFlight, dead, listed, tally.waits]);
    const waits = Object.values(counters.waits ?? {}).reduce((sum, count) => sum + count, 0);
    const { pending: waiting, inFlight: running, dead: ended, listed: all = 0 } = counters;
    const stored = JSON.stringify([waiting, running, ended, all, waits]);
    if (counted !== stored) this.#say(`${queue.name} counts ${stored}, there are ${counted}`);
    for (const [at, count] of created) {
      const key = queueTimeKey(kinds.created, queue.number, at);
      this.#expect(key);
      const there = this.rows.get(key)?.readUInt32BE(0);
      if (there !== count) this.#say(`${queue.name} counts ${there} of ${at}, there are ${count}`);
    }
    for (const [text, group] of tally.groups) {
      this.#group(tally, Buffer.from(text, 'latin1'), group);
    }
    this.#ready(tally);
  }

  #group(
    { queue, counters }: Tally,
    group: Buffer,
    found: { inFlight: number; retried: StoredTask[]; waiting: StoredTask[] },
  ): void {
    const stored = readGroup(this.rows, queue.number, group);
    const head = counters.fifo && found.inFlight === 0 ? firstOf(found) : undefined;
    const [is, should] = [
      JSON.stringify([stored.inFlight, stored.retried, stored.head?.id]),
      JSON.stringify([found.inFlight, found.retried.length, head?.row.id]),
    ];
    if (is !== should) this.#say(`the group ${group.toString()} is ${is}, should be ${should}`);
    if (found.inFlight + found.retried.length > 0 || head)
      this.#expect(groupKey(queue.number, group));
    if (!head) return;
    const { priority, dueAt, id } = head.row;
    this.#expect(readyKey(queue.number, priority, group, dueAt!, id));
  }

  /** Low-water marks and priority bits must not hide ready tasks. */
  #ready({ queue, counters }: Tally): void {
    for (const { key } of this.#rowsOf(kinds.ready)) {
      if (key.readUInt32BE(1) !== queue.number) continue;
      const priority = readyPriority(key);
      if (!(counters.lanes & (1 << priority))) this.#say(`lane ${priority} is hidden`);
      const floor = counters.floors[priority];
      if (!floor || isGrouped(readyGroup(key))) continue;
      const [time, id] = [timeOf(key), idOf(key)];
      if (time < floor[0] || (time === floor[0] && id <= floor[1])) {
        this.#say(`${id} is below the floor`);
      }
    }
  }

  #groupOf(tally: Tally, group: Buffer) {
    const name = group.toString('latin1');
    let found = tally.groups.get(name);
    if (!found) tally.groups.set(name, (found = { inFlight: 0, retried: [], waiting: [] }));
    return found;
  }

  #rowsOf(kind: number) {
    return this.rows.range({ start: Buffer.of(kind), end: Buffer.of(kind + 1) });
  }

  #expect(key: Buffer): void {
    if (!this.rows.get(key)) return this.#say(`row ${show(key)} is missing`);
    this.#expected.set(key[0]!, (this.#expected.get(key[0]!) ?? 0) + 1);
  }

  #say(problem: string): void {
    this.problems.push(problem);
  }
}

function firstOf(group: { retried: StoredTask[]; waiting: StoredTask[] }): StoredTask | undefined {
  const order = (a: StoredTask, b: StoredTask) =>
    a.row.dueAt! - b.row.dueAt! || (a.row.id < b.row.id ? -1 : 1);
  if (group.retried.length === 0) return group.waiting.toSorted(order)[0];
  const first = group.retried.toSorted(order)[0]!;
  return group.waiting.includes(first) ? first : undefined;
}

function show(key: Buffer): string {
  return `${nameOf(key[0])} ${key.subarray(1).toString('latin1')}`;
}

function nameOf(kind: number | undefined): string | undefined {
  return Object.entries(kinds).find(([, number]) => number === kind)?.[0];
}
