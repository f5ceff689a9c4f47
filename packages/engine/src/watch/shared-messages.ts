import type { Commit } from '../format/changes.js';
import type { Hash64 } from '../value/hash.js';
import type { WatchMessage } from './message.js';
import { RecentCommits } from './recent-commits.js';

// Watches that share stand close together: the slow ones make their messages themselves.
const maxCached = 256;
const maxCachedBytes = 512 * 1024;
const maxBatches = 4;

interface CachedMessage<Shown> {
  readonly commit: Commit;
  readonly bytes: number;
  /** Undefined: the commit has nothing to show. */
  readonly message: WatchMessage<Shown> | undefined;
}

/** What some commits in a row have to show. */
export interface Batch<Shown> {
  /** The commit before the first of them. */
  readonly after: number;
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
  readonly #cached = new RecentCommits<CachedMessage<Shown>>(maxCached, maxCachedBytes);
  /** The oldest first. */
  #batches: Batch<Shown>[] = [];

  /** What was made of this very commit: after a fail-over another one may bear its number. */
  find(commit: Commit): CachedMessage<Shown> | undefined {
    const cached = this.#cached.find(commit.seq);
    return cached?.commit === commit ? cached : undefined;
  }

  keep(commit: Commit, bytes: number, message: WatchMessage<Shown> | undefined): void {
    if (this.users < 2 || bytes > maxCachedBytes / 2) return;
    this.#cached.keep({ commit, bytes, message });
  }

  /** The next messages for a watch at this commit. */
  batchAfter(seq: number): Batch<Shown> | undefined {
    return this.#batches.find(({ after }) => after === seq);
  }

  keepBatch(batch: Batch<Shown>): void {
    if (this.users < 2 || batch.bytes > maxCachedBytes / 2) return;
    this.#batches.push(batch);
    if (this.#batches.length > maxBatches) this.#batches.shift();
  }

  /** Forgets what all watches of this look have told. */
  forgetTo(seq: number): void {
    this.#cached.forgetTo(seq);
    if (this.#batches.some(({ after }) => after < seq)) {
      this.#batches = this.#batches.filter(({ after }) => after >= seq);
    }
  }

  /** Commits were taken back, and others may come to bear their numbers. */
  historyCut(): void {
    this.#cached.clear();
    this.#batches = [];
  }
}
