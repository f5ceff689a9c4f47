import type { WatchChange, WatchMessage } from '../engine/watch/message.js';

interface SentRecord {
  collection: string;
  key: string;
  rev: number;
  seq: number;
}

/**
 * The records that a watch begins with, told once each although the connection may be cut in the
 * middle of them. There is no way back into the middle, so the server begins anew; what the reader
 * has had already is left out, what has changed since is told as an update, and what is gone as a
 * delete, all before `initial_end`.
 */
export class InitialRecords<T> {
  readonly #sent = new Map<string, SentRecord>();
  /** What has come again since the last restart. */
  #again: Set<string> | undefined;
  #isOpen = true;

  /** True until `initial_end` has come. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** The server begins anew. */
  restart(): void {
    if (this.#isOpen) this.#again = new Set();
  }

  /** What the reader is told of a message. */
  pass(message: WatchMessage<WatchChange<T>>): WatchMessage<WatchChange<T>>[] {
    if (!this.#isOpen) return [message];
    if (message.kind === 'initial') {
      const changes = message.changes.flatMap((change) => this.#fresh(change));
      return changes.length > 0 ? [{ ...message, changes }] : [];
    }
    if (message.kind !== 'initial_end') return [message];
    const changes = this.#vanished(message.seq);
    this.#isOpen = false;
    this.#sent.clear();
    this.#again = undefined;
    if (changes.length === 0) return [message];
    return [{ ...message, kind: 'initial', changes, resumeToken: '' }, message];
  }

  #fresh(change: WatchChange<T>): WatchChange<T>[] {
    if (change.op !== 'insert') return [change];
    const { collection } = change;
    const { id, key, rev, seq } = change.record;
    this.#again?.add(id);
    const before = this.#sent.get(id);
    this.#sent.set(id, { collection, key, rev, seq });
    if (!before) return [change];
    return before.seq === seq ? [] : [{ ...change, op: 'update' }];
  }

  #vanished(seq: number): WatchChange<T>[] {
    if (!this.#again) return [];
    const again = this.#again;
    return [...this.#sent]
      .filter(([id]) => !again.has(id))
      .map(([id, { collection, key, rev }]) => ({
        op: 'delete',
        collection,
        entered: false,
        left: false,
        record: { id, key, rev, seq },
      }));
  }
}
