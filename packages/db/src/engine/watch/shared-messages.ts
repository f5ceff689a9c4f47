import type { Commit } from '../changes.js';
import type { Hash64 } from '../hash.js';
import type { WatchMessage } from './message.js';

// Watches that share stand close together: the slow ones make their messages themselves.
const mostKept = 256;
const mostKeptBytes = 512 * 1024;
const mostBatches = 4;

interface Kept<Shown> {
  readonly commit: Commit;
  readonly bytes: number;
  /** Undefined: the commit has nothing to show. */
  readonly message: WatchMessage<Shown> | undefined;
}

/** What some commits in a row have to show. */
export interface Batch<Shown> {
  /** The last of the commits. */
  readonly seq: number;
  readonly chain: Hash64;
  readonly bytes: number;
  readonly messages: readonly WatchMessage<Shown>[];
}

/** What watches of the same look show of the newest commits: made by the first, sent by all. */
export class SharedMessages<Shown> {
  /** How many watches have this look. */
  users = 0;
  readonly #kept = new Map<number, Kept<Shown>>();
  #keptBytes = 0;
  /** By the commit before their first. */
  readonly #batches = new Map<number, Batch<Shown>>();

  /** What was made of this very commit: after a fail-over another one may bear its number. */
  find(commit: Commit): Kept<Shown> | undefined {
    const kept = this.#kept.get(commit.seq);
    return kept?.commit === commit ? kept : undefined;
  }

  keep(commit: Commit, bytes: number, message: WatchMessage<Shown> | undefined): void {
    if (this.users < 2 || bytes > mostKeptBytes / 2) return;
    const before = this.#kept.get(commit.seq);
    if (before) this.#forget(commit.seq, before);
    this.#kept.set(commit.seq, { commit, bytes, message });
    this.#keptBytes += bytes;
    for (const [seq, oldest] of this.#kept) {
      if (this.#kept.size <= mostKept && this.#keptBytes <= mostKeptBytes) return;
      this.#forget(seq, oldest);
    }
  }

  /** What a watch that stands at this commit is to be told next. */
  batchAfter(seq: number): Batch<Shown> | undefined {
    return this.#batches.get(seq);
  }

  keepBatch(after: number, batch: Batch<Shown>): void {
    if (this.users < 2 || batch.bytes > mostKeptBytes / 2) return;
    this.#batches.set(after, batch);
    if (this.#batches.size <= mostBatches) return;
    const [oldest] = this.#batches.keys();
    this.#batches.delete(oldest!);
  }

  /** Commits were taken back, and others may come to bear their numbers. */
  historyCut(): void {
    this.#batches.clear();
  }

  #forget(seq: number, kept: Kept<Shown>): void {
    this.#kept.delete(seq);
    this.#keptBytes -= kept.bytes;
  }
}
