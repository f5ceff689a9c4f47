import { hash } from 'node:crypto';
import type { Clock } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import type { Verdict } from '../../core/verdict.js';
import type {
  TaskStore,
  WorkerIdentity,
  WorkerNote,
  WorkerStats,
} from '../../storage/port/task-store.js';
import { Alarm } from '../state/alarm.js';

export interface WorkerActivityOptions {
  store: TaskStore;
  clock: Clock;
  log: Log;
}

const flushMs = 1_000;
const listedMs = 600_000;
/** Workers noted in one flush; the statistics of more are dropped. */
const maxNotes = 5_000;

/** Counts what workers do on this server, and passes it on to the store once a second. */
export class WorkerActivity {
  #notes = new Map<string, WorkerNote>();
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
    else if (verdict === 'handed_back') note.returned++;
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
    return store.listWorkers({ queue, seenSince: clock.now() - listedMs });
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
      await store.noteWorkers(notes, clock.now());
    } catch (error) {
      // Only statistics: they must not keep tasks from being claimed or settled.
      log.debug({ err: error }, `failed to note workers: ${messageOf(error)}`);
    }
  }
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
