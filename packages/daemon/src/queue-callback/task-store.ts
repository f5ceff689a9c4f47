import type { Database } from '@millrace/engine';
import type { Report } from './report.js';

/** A task of the queue, its session, and the pending report. */
export interface QueueTask {
  key: string;
  task_id: string;
  queue: string;
  lease_token: string;
  /** Null while the session is being spawned. */
  session_id: string | null;
  /** `settled`: reported. `lost`: the lease is no longer ours. `given_up`: the report failed. */
  state: 'spawning' | 'working' | 'reporting' | 'settled' | 'lost' | 'given_up';
  report: Report | null;
  /** When the report was created. */
  reported_at: number;
  tries: number;
  received_at: number;
}

const collection = 'queue_tasks';

/** Ended tasks stay for a day, in case the same attempt is delivered again. */
const retentionMs = 24 * 3_600_000;

/** The tasks on disk. The event stream does not show this collection. */
export class TaskStore {
  constructor(private readonly database: Database) {}

  async find(key: string): Promise<QueueTask | undefined> {
    return (await this.#collection().findByKey(key))?.data;
  }

  async put(task: QueueTask): Promise<void> {
    await this.#collection().upsert(task.key, task);
  }

  async remove(key: string): Promise<void> {
    await this.database.transact((target) => target.collection(collection).delete(key));
  }

  /** Updates the stored task; undefined when there is none. */
  change(key: string, change: (task: QueueTask) => QueueTask): Promise<QueueTask | undefined> {
    return this.database.transact((target) => {
      const tasks = target.collection<QueueTask>(collection);
      const before = tasks.get(key);
      if (!before) return undefined;
      const task = change(before);
      tasks.put(key, task, { ttlMs: isOver(task) ? retentionMs : 0 });
      return task;
    });
  }

  /** Tasks that have not ended. */
  async open(): Promise<QueueTask[]> {
    const found: QueueTask[] = [];
    for await (const { data } of this.#collection().stream()) {
      if (!isOver(data)) found.push(data);
    }
    return found;
  }

  #collection() {
    return this.database.collection<QueueTask>(collection);
  }
}

export function isOver({ state }: QueueTask): boolean {
  return state === 'settled' || state === 'lost' || state === 'given_up';
}

/** The attempt was deferred, so it is delivered again later. */
export function isDeferred({ report }: QueueTask): boolean {
  return report?.kind === 'fail' && report.defer === true;
}
