import { mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Timer } from '@millrace/kit/clock';
import { UsageError } from '@millrace/kit/errors';
import type { Core, LogPin } from '../core.js';
import { lineageOf } from '../format.js';
import type { Hash64 } from '../hash.js';
import { syncDirectory } from '../storage/directory.js';
import { sameHash } from '../watch/token.js';
import { archiveFiles, baseBackupName, logBackupName, readHeader } from './archive.js';
import { chainAt } from './backup.js';
import { writeBackup } from './file.js';

export interface LogArchiveOptions {
  /** Holds one database: base backups and the commits after them. */
  directory: string;
  /** How often new commits are archived; 60 s by default. */
  intervalMs?: number;
}

const defaultIntervalMs = 60_000;
const unfinishedName = 'unfinished.backup';

/**
 * Copies the change log to a directory, for point-in-time restore. The first file is a base backup;
 * each later one holds the commits since the one before it. The log retains what is not archived.
 */
export class LogArchiver {
  #timer: Timer | undefined;
  #running: Promise<void> = Promise.resolve();
  #isStopped = false;
  readonly #pin: LogPin;

  private constructor(
    private readonly core: Core,
    private readonly options: LogArchiveOptions,
    private last: { seq: number; chain: Hash64 } | undefined,
  ) {
    this.#pin = core.pinLog((last?.seq ?? core.durable.seq) + 1);
    this.#schedule(0);
  }

  static async open(core: Core, options: LogArchiveOptions): Promise<LogArchiver> {
    const { directory } = options;
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(directory)) {
      if (name.startsWith(unfinishedName)) rmSync(join(directory, name), { force: true });
    }
    const [newest] = archiveFiles(directory);
    if (!newest) return new LogArchiver(core, options, undefined);
    const { lineageId, seq, chainHash } = await readHeader(newest.path);
    if (lineageId !== lineageOf(core.tables)) {
      throw new UsageError(
        `${directory} is the log archive of another database (lineage ${lineageId}). ` +
          'Set log_archive to a directory of its own.',
      );
    }
    return new LogArchiver(core, options, { seq, chain: chainHash });
  }

  /** Commits that are not archived yet. */
  get lagCommits(): number {
    return Math.max(0, this.core.durable.seq - (this.last?.seq ?? 0));
  }

  /** Archives everything that is durable now. */
  archive(): Promise<void> {
    const running = this.#running.then(() => this.#archive());
    this.#running = running.catch(() => undefined);
    return running;
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  /** Archives the rest. A failure is logged: the next start continues from the log. */
  async close(): Promise<void> {
    this.stop();
    await this.archive().catch((error: unknown) => this.#logFailure(error));
    this.#pin.release();
  }

  #schedule(delayMs: number): void {
    this.#timer = this.core.clock.after(delayMs, () => {
      this.archive()
        .catch((error: unknown) => this.#logFailure(error))
        .finally(() => {
          if (!this.#isStopped) this.#schedule(this.options.intervalMs ?? defaultIntervalMs);
        });
    });
  }

  async #archive(): Promise<void> {
    const { core, last } = this;
    const { directory } = this.options;
    if (core.durable.seq === 0) return;
    const continues = last !== undefined && this.#continues(last);
    if (continues && last.seq === core.durable.seq) return;
    const unfinished = join(directory, unfinishedName);
    const sinceSeq = continues ? last.seq : 0;
    const { header } = await writeBackup(core, unfinished, { sinceSeq });
    const { seq, chainHash } = header;
    const name = sinceSeq > 0 ? logBackupName(sinceSeq + 1, seq) : baseBackupName(seq);
    renameSync(unfinished, join(directory, name));
    syncDirectory(directory);
    this.last = { seq, chain: chainHash };
    this.#pin.seq = seq + 1;
  }

  /** False when the log does not go on from there: it was trimmed, or commits were taken back. */
  #continues({ seq, chain }: { seq: number; chain: Hash64 }): boolean {
    const { durable } = this.core;
    if (seq > durable.seq || seq + 1 < durable.oldestSeq) return false;
    return sameHash(chainAt(this.core, durable, seq), chain);
  }

  #logFailure(error: unknown): void {
    this.core.log.error({ err: error, directory: this.options.directory }, 'log archive failed');
  }
}
