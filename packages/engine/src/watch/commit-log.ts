import { decodeCommit, type Commit } from '../format/changes.js';
import type { Core } from '../core/core.js';
import type { Hash64 } from '../value/hash.js';
import { refuse } from '../value/refusal.js';
import { RecentCommits } from './recent-commits.js';

export const maxCached = 1_024;
const maxCachedBytes = 8 * 2 ** 20;

export interface ReadCommit {
  readonly commit: Commit;
  readonly bytes: number;
}

/**
 * The change log for watches: only commits that are on disk. The newest ones are cached decoded,
 * because most watches are at the same position.
 */
export class CommitLog {
  readonly #cached = new RecentCommits<ReadCommit>(maxCached, maxCachedBytes);

  constructor(private readonly core: Core) {}

  /** The commit, which must be on disk. Refuses WATCH_COMPACTED when the log no longer has it. */
  read(seq: number): ReadCommit {
    this.checkReaches(seq);
    const cached = this.#cached.find(seq);
    if (cached) return cached;
    const row = this.core.commitRow(seq);
    if (!row) throw refuse('CORRUPT', `The change log has no commit ${seq}; run "ctl db verify".`);
    const read = { commit: decodeCommit(seq, row, this.core.codec), bytes: row.length };
    if (read.bytes <= maxCachedBytes / 8) this.#cached.keep(read);
    return read;
  }

  /** The chain hash after commit `seq`, which must be on disk. */
  chainAt(seq: number): Hash64 {
    const { durable } = this.core;
    if (seq === durable.seq) return durable.chain;
    if (seq === durable.oldestSeq - 1) return durable.oldestChain;
    return this.read(seq).commit.chain;
  }

  /** Drops all cached commits: the history was rolled back. */
  clear(): void {
    this.#cached.clear();
  }

  /** Drops cached commits up to this one. */
  forgetTo(seq: number): void {
    this.#cached.forgetTo(seq);
  }

  /** Refuses a position that the log no longer reaches. */
  checkReaches(seq: number): void {
    if (seq < this.core.durable.oldestSeq) throw compacted(seq, this.core.durable.oldestSeq);
  }
}

export function compacted(seq: number, oldestSeq: number) {
  return refuse(
    'WATCH_COMPACTED',
    `The change log begins at commit ${oldestSeq} and no longer has ${seq}; ` +
      'start again from the present state.',
    { oldest_seq: String(oldestSeq) },
  );
}
