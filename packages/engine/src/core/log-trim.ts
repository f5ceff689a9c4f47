import type { Timer } from '@millrace/kit/clock';
import { commitChain, commitTime } from '../format/record.js';
import type { Core } from './core.js';
import { encodeLsn } from '../storage/store.js';
import type { Hash64 } from '../value/bytes.js';
import { refuse } from '../value/documents.js';

export interface LogRetention {
  ageMs: number;
  bytes: number;
}

export const defaultRetention: LogRetention = { ageMs: 24 * 3_600_000, bytes: 2 ** 30 };

/** The row of `meta` with the last batch before the newest backup by batches. */
const backupRow = Buffer.from('backup_lsn');

/** Retains batches from now on as commits are retained, so that a backup can be continued. */
export async function retainBatches(core: Core): Promise<void> {
  await core.writer.submit(() =>
    core.writer.put('meta', backupRow, encodeLsn(core.store.durableLsn)),
  );
}

const commitsPerTurn = 1_000;
const trimEveryMs = 30_000;

/** The start of the log: its oldest commit and the chain hash before it. */
interface LogBegin {
  oldestSeq: number;
  oldestChain: Hash64;
}

/** Keeps the change log within its limits. */
export class LogTrimmer {
  #timer: Timer | undefined;
  #stopped = false;

  constructor(
    private readonly core: Core,
    private readonly retention: LogRetention,
  ) {
    this.#schedule();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  /** Removes commits beyond the retention limits, and all commits before `beforeSeq`. */
  async trim(beforeSeq = 0): Promise<void> {
    const { core } = this;
    const begin = await this.#target(beforeSeq);
    if (this.#stopped) return;
    if (begin.oldestSeq > core.durable.oldestSeq) {
      await core.writer.submit(() => {
        if (begin.oldestSeq <= core.state.oldestSeq || begin.oldestSeq > core.state.seq + 1) return;
        core.writer.state = { ...core.state, ...begin };
      });
    }
    await this.#dropSegments();
  }

  /** Without backups by batches nobody reads batches that are in the store. */
  async #dropSegments(): Promise<void> {
    const { core, retention } = this;
    const backup = core.store.get('meta', backupRow);
    if (!backup) return core.dropSegments(Infinity);
    const expired =
      core.store.log?.lsnBeyond(core.clock.now() - retention.ageMs, retention.bytes) ?? 0;
    core.dropSegments(expired);
    if (expired <= backup.readUIntBE(0, 6)) return;
    await core.writer.submit(() => core.writer.remove('meta', backupRow));
  }

  /** The oldest commit that `trim` would leave. */
  async preview(beforeSeq = 0): Promise<number> {
    return (await this.#target(beforeSeq)).oldestSeq;
  }

  #schedule(): void {
    this.#timer = this.core.clock.after(trimEveryMs, () => {
      this.trim()
        .catch((error: unknown) => this.core.log.error({ err: error }, 'log trim failed'))
        .finally(() => {
          if (!this.#stopped) this.#schedule();
        });
    });
  }

  async #target(beforeSeq: number): Promise<LogBegin> {
    const { durable } = this.core;
    const end = durable.seq + 1;
    const enough = Math.max(
      Math.min(beforeSeq, end),
      this.#firstWithinBytes(durable.oldestSeq, end),
    );
    const expired = await this.#firstWithinAge(Math.max(enough, durable.oldestSeq), end);
    // A follower or a running backup still needs the commits from a pin on.
    const oldest = Math.max(durable.oldestSeq, Math.min(expired, this.core.pinnedSeq));
    return { oldestSeq: oldest, oldestChain: this.#chainBefore(oldest, durable) };
  }

  /** The first commit from which the log is within its size limit. */
  #firstWithinBytes(from: number, end: number): number {
    const { log } = this.core.store;
    let [low, high] = [from, end];
    while (log && low < high) {
      const middle = (low + high) >>> 1;
      if (log.bytesFrom(middle) > this.retention.bytes) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  async #firstWithinAge(from: number, end: number): Promise<number> {
    const { core } = this;
    const oldestTime = core.clock.now() - this.retention.ageMs;
    // All segments before one that was started before that time are too old.
    let seq = Math.max(from, core.store.log?.firstSeqAfter(oldestTime) ?? 0);
    for (let seen = 1; seq < end; seq++, seen++) {
      const row = core.commitRow(seq);
      if (!row || commitTime(row) >= oldestTime) break;
      if (seen % commitsPerTurn === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    return Math.min(seq, end);
  }

  #chainBefore(seq: number, durable: { oldestSeq: number; oldestChain: Hash64 }): Hash64 {
    if (seq <= durable.oldestSeq) return durable.oldestChain;
    const row = this.core.commitRow(seq - 1);
    if (row) return commitChain(row);
    throw refuse('CORRUPT', `The change log has no commit ${seq - 1}; run "ctl db verify".`);
  }
}
