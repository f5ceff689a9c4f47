import type { Clock } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import { hash } from 'node:crypto';
import type { Verdict } from '../core/outcome.js';
import { removalOf, type RowPut, type TaskStore } from '../storage/port/task-store.js';
import type { WorkerIdentity } from './waiting-claims.js';
import { Alarm } from './queue-state.js';

export interface WorkerActivityOptions {
  store: TaskStore;
  clock: Clock;
  log: Log;
}

export interface WorkerStats extends WorkerIdentity {
  lastSeenAt: number;
  inFlight: number;
  claimed: number;
  completed: number;
  failed: number;
}

/** What was seen of a worker: by one server since its last note, or by all in all. */
interface WorkerCounts {
  /** Undefined: only its lease tokens were seen. */
  identity: WorkerIdentity | undefined;
  seenAt: number;
  claimed: number;
  completed: number;
  failed: number;
  /** Claims that were handed back. */
  returned: number;
}

export interface WorkerNote extends WorkerCounts {
  queue: string;
  /** Identifies the worker within the queue; part of its lease tokens. */
  key: string;
}

const flushMs = 1_000;
const listedMs = 600_000;
/** Workers noted in one flush; the statistics of more are dropped. */
const maxNotes = 5_000;
/** How long a worker that is no longer seen is remembered: longer than any first lease. */
const memoryMs = 2 * 3_600_000;
const forgetIntervalMs = 60_000;
/** The workers seen longest ago are forgotten above this. */
const maxWorkers = 20_000;

/**
 * Counts what workers do on this server. Servers that share a store add it up there once a second,
 * in rows; a server of its own keeps it in memory, and forgets it when it ends.
 */
export class WorkerActivity {
  #notes = new Map<string, WorkerNote>();
  readonly #known = new WorkerTable();
  #forgotAt = -Infinity;
  readonly #alarm: Alarm;
  #flushing: Promise<void> = Promise.resolve();

  constructor(private readonly options: WorkerActivityOptions) {
    this.#alarm = new Alarm(options.clock, () => void this.#flush());
  }

  seen(queue: string, identity: WorkerIdentity): void {
    this.#note(queue, workerKey(queue, identity)).identity = identity;
  }

  claimed(queue: string, key: string, count: number): void {
    this.#note(queue, key).claimed += count;
  }

  extended(queue: string, token: string): void {
    const key = keyOf(token);
    if (key) this.#note(queue, key);
  }

  settled(queue: string, token: string, verdict: Verdict['kind']): void {
    const key = keyOf(token);
    if (!key) return;
    const note = this.#note(queue, key);
    if (verdict === 'succeeded') note.completed++;
    else if (verdict === 'handed_back' || verdict === 'suspended') note.returned++;
    else note.failed++;
  }

  expired(queue: string, token: string): void {
    this.#taken(queue, token, 'failed');
  }

  /** An operator cancelled the task, which is no failure of the worker. */
  revoked(queue: string, token: string): void {
    this.#taken(queue, token, 'returned');
  }

  /** Losing a lease is no sign of life. */
  #taken(queue: string, token: string, count: 'failed' | 'returned'): void {
    const key = keyOf(token);
    if (!key) return;
    const before = this.#notes.get(`${queue} ${key}`)?.seenAt ?? 0;
    const note = this.#note(queue, key);
    note[count]++;
    note.seenAt = before;
  }

  async list(queue: string): Promise<WorkerStats[]> {
    const { store, clock } = this.options;
    await this.#flush();
    const found = store.capabilities.isShared
      ? (await store.listRows({ table: 'worker', queue })).map(({ value }) => value as WorkerCounts)
      : this.#known.of(queue);
    return workerStats(found, clock.now() - listedMs);
  }

  /** The queue was deleted, and its rows with it. */
  forget(queue: string): void {
    this.#known.forget(queue);
  }

  async stop(): Promise<void> {
    this.#alarm.cancel();
    await this.#flush();
  }

  #note(queue: string, key: string): WorkerNote {
    const id = `${queue} ${key}`;
    const seenAt = this.options.clock.now();
    let note = this.#notes.get(id);
    if (note) {
      note.seenAt = seenAt;
      return note;
    }
    const counts = { claimed: 0, completed: 0, failed: 0, returned: 0 };
    note = { queue, key, identity: undefined, seenAt, ...counts };
    if (this.#notes.size < maxNotes) this.#notes.set(id, note);
    this.#alarm.ringIn(flushMs);
    return note;
  }

  /** One at a time, so that a worker is stored before a later count of it. */
  #flush(): Promise<void> {
    this.#flushing = this.#flushing.then(() => this.#store());
    return this.#flushing;
  }

  async #store(): Promise<void> {
    const { store, clock, log } = this.options;
    const notes = [...this.#notes.values()];
    if (notes.length === 0) return;
    this.#notes = new Map();
    try {
      if (!store.capabilities.isShared) return this.#known.add(notes, clock.now());
      await store.writeRows({ puts: notes.map(putOf), now: clock.now() });
      await this.#forgetOld();
    } catch (error) {
      // Only statistics: they must not keep tasks from being claimed or settled.
      log.debug({ err: error }, `failed to note workers: ${messageOf(error)}`);
    }
  }

  /** In the store; other servers do the same. */
  async #forgetOld(): Promise<void> {
    const { store, clock } = this.options;
    const now = clock.now();
    if (now - this.#forgotAt < forgetIntervalMs) return;
    this.#forgotAt = now;
    const rows = await store.listRows({ table: 'worker' });
    const old = rows.filter(({ value }) => (value as WorkerCounts).seenAt < now - memoryMs);
    if (old.length > 0) await store.writeRows({ removals: old.map(removalOf), now });
  }
}

/** Workers by queue and key, in the order in which they were seen last. */
export class WorkerTable {
  readonly #workers = new Map<string, WorkerNote>();

  add(notes: readonly WorkerNote[], now: number): void {
    for (const note of notes) {
      const id = `${note.queue} ${note.key}`;
      const counts = sum(this.#workers.get(id), note);
      if (!counts) continue;
      this.#workers.delete(id);
      this.#workers.set(id, { ...counts, queue: note.queue, key: note.key });
    }
    for (const [id, { seenAt }] of this.#workers) {
      const isSurplus = this.#workers.size > maxWorkers;
      if (isSurplus || seenAt < now - memoryMs) this.#workers.delete(id);
    }
  }

  of(queue: string): WorkerNote[] {
    return [...this.#workers.values()].filter((worker) => worker.queue === queue);
  }

  forget(queue: string): void {
    for (const [id, worker] of this.#workers) if (worker.queue === queue) this.#workers.delete(id);
  }
}

function putOf({ queue, key, ...note }: WorkerNote): RowPut {
  const value = (before: object | undefined) => sum(before as WorkerCounts | undefined, note);
  return { table: 'worker', queue, key, value };
}

/** Undefined: the worker is unknown. */
function sum(before: WorkerCounts | undefined, note: WorkerCounts): WorkerCounts | undefined {
  const identity = note.identity ?? before?.identity;
  if (!identity) return undefined;
  return {
    identity,
    seenAt: Math.max(before?.seenAt ?? 0, note.seenAt),
    claimed: (before?.claimed ?? 0) + note.claimed,
    completed: (before?.completed ?? 0) + note.completed,
    failed: (before?.failed ?? 0) + note.failed,
    returned: (before?.returned ?? 0) + note.returned,
  };
}

/** Those seen since a time, the most recent first. */
export function workerStats(found: readonly WorkerCounts[], seenSince: number): WorkerStats[] {
  return found
    .filter(({ seenAt }) => seenAt >= seenSince)
    .map(({ identity, seenAt, claimed, completed, failed, returned }) => {
      // Claims of before a restart may end without having been counted.
      const inFlight = Math.max(0, claimed - completed - failed - returned);
      return { ...identity!, lastSeenAt: seenAt, inFlight, claimed, completed, failed };
    })
    .toSorted((a, b) => b.lastSeenAt - a.lastSeenAt || (a.worker < b.worker ? -1 : 1));
}

/** Identifies a worker within its queue, also to other servers, by its lease tokens. */
export function workerKey(
  queue: string,
  { worker, principal }: Pick<WorkerIdentity, 'worker' | 'principal'>,
): string {
  return hash('sha256', JSON.stringify([queue, principal, worker]), 'base64url').slice(0, 12);
}

/** Undefined: the token of a callback. */
function keyOf(token: string): string | undefined {
  return /^l1\.[\w-]+\.([\w-]{12})$/.exec(token)?.[1];
}
