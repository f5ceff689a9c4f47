import type { Commit } from '../format/changes.js';
import type { Hash64 } from '../value/hash.js';
import type { WatchMessage } from './message.js';
import { RecentCommits } from './recent-commits.js';

// Watches that share messages are close together: slow ones build theirs themselves.
const maxCached = 256;
const maxCachedBytes = 512 * 1024;
const maxBatches = 4;

interface CachedMessage<Shown> {
  readonly commit: Commit;
  readonly bytes: number;
  /** Undefined: the commit has nothing to show. */
  readonly message: WatchMessage<Shown> | undefined;
}

/** The messages of consecutive commits. */
export interface Batch<Shown> {
  /** The commit before the first of them. */
  readonly after: number;
  /** The last of the commits. */
  readonly seq: number;
  readonly chain: Hash64;
  readonly bytes: number;
  readonly messages: readonly WatchMessage<Shown>[];
}

/**
 * Messages of the newest commits, shared by watches that show the same: built once, sent by all.
 */
export class SharedMessages<Shown> {
  /** Number of watches that share them. */
  users = 0;
  readonly #cached = new RecentCommits<CachedMessage<Shown>>(maxCached, maxCachedBytes);
  /** Oldest first. */
  #batches: Batch<Shown>[] = [];

  /** The message of exactly this commit: after a failover another one may have its number. */
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

  /** Drops messages that all these watches have delivered. */
  forgetTo(seq: number): void {
    this.#cached.forgetTo(seq);
    if (this.#batches.some(({ after }) => after < seq)) {
      this.#batches = this.#batches.filter(({ after }) => after >= seq);
    }
  }

  /** Commits were rolled back, and new ones may reuse their numbers. */
  historyCut(): void {
    this.#cached.clear();
    this.#batches = [];
  }
}
