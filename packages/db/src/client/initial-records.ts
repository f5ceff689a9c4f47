import type { WatchChange, WatchMessage } from '@millrace/engine/watch/message';

interface SentRecord {
  collection: string;
  key: string;
  rev: number;
  seq: number;
}

/**
 * Delivers the initial records of a watch once each, even if the connection fails in the middle.
 * The server then restarts the initial records: those already delivered are skipped, changed ones
 * become updates and missing ones become deletes, all before `initial_end`.
 */
export class InitialRecords<T> {
  readonly #sent = new Map<string, SentRecord>();
  /** Ids received since the last restart. */
  #again: Set<string> | undefined;
  #isOpen = true;

  /** True until `initial_end` is received. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** The server restarts the initial records. */
  restart(): void {
    if (this.#isOpen) this.#again = new Set();
  }

  /** Returns the messages to deliver for a message from the server. */
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
