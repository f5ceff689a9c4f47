import type {
  RecordKey,
  RecordPart,
  RecordQuery,
  RecordState,
  StoredRecord,
} from '../../../src/storage/port/stored-record.js';
import type { RecordWrite } from '../../../src/storage/port/task-store.js';
import { compareText } from './claim-order.js';

/** The records of all queues. */
export class RecordMap {
  readonly #records = new Map<string, StoredRecord>();

  list({ kind, queue, name, after = '', limit }: RecordQuery): StoredRecord[] {
    return [...this.#records.values()]
      .filter(
        (record) =>
          record.kind === kind &&
          (queue === undefined || record.queue === queue) &&
          (name === undefined || record.name === name) &&
          record.name > after,
      )
      .toSorted((a, b) => compareText(a.queue, b.queue) || compareText(a.name, b.name))
      .slice(0, limit)
      .map((record) => structuredClone(record));
  }

  revisionOf(key: RecordKey): number {
    return this.#records.get(textOf(key))?.revision ?? 0;
  }

  /** The caller has compared the revision. */
  put(write: Omit<RecordWrite, 'ifRevision' | 'tasks' | 'audit'>, state: RecordPart): RecordState {
    const { kind, queue, name, now } = write;
    const before = this.#records.get(textOf(write));
    const shown = {
      kind,
      queue,
      name,
      state: structuredClone(state),
      revision: (before?.revision ?? 0) + 1,
      createdAt: before?.createdAt ?? now,
    };
    const body = write.body ? structuredClone(write.body) : before!.body;
    this.#records.set(textOf(write), { ...shown, body });
    return shown;
  }

  delete(key: RecordKey): boolean {
    return this.#records.delete(textOf(key));
  }

  deleteOf(queue: string): void {
    for (const record of this.#records.values()) {
      if (record.queue === queue) this.delete(record);
    }
  }
}

function textOf({ kind, queue, name }: RecordKey): string {
  return JSON.stringify([kind, queue, name]);
}
