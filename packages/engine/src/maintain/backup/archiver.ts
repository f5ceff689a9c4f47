import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Timer } from '@millrace/kit/clock';
import { UsageError } from '@millrace/kit/errors';
import type { Core, LogPin } from '../../core/core.js';
import { lineageOf } from '../../storage/file/state.js';
import type { Hash64 } from '../../value/hash.js';
import { syncDirectory } from '../../storage/file/directory.js';
import { sameHash } from '../../watch/token.js';
import {
  archiveFiles,
  baseBackupName,
  logBackupName,
  readHeader,
  type ArchiveFile,
} from './archive.js';
import { chainAt } from './backup.js';
import { writeBackup } from './file.js';

export interface LogArchiveOptions {
  /** Archive of one database: base backups and the commits after them. */
  directory: string;
  /** How often new commits are archived; 10 s by default. */
  intervalMs?: number;
}

const defaultIntervalMs = 10_000;
const unfinishedName = 'unfinished.backup';

/** The file that the next one continues. */
interface LastFile {
  path: string;
  seq: number;
  chain: Hash64;
}

/**
 * Copies the change log to a directory, for point-in-time restore. The first file is a base backup;
 * each later one holds the commits since the one before it. The log retains what is not archived.
 */
export class LogArchiver {
  #timer: Timer | undefined;
  #running: Promise<void> = Promise.resolve();
  readonly #stop = new AbortController();
  readonly #pin: LogPin;

  private constructor(
    private readonly core: Core,
    private readonly options: LogArchiveOptions,
    private last: LastFile | undefined,
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
    const files = archiveFiles(directory);
    const [newest] = files;
    if (!newest) {
      const archiver = new LogArchiver(core, options, undefined);
      // At once, so that every commit can be restored to, from the first on.
      if (core.durable.seq === 0) await archiver.#archiveOrLog();
      return archiver;
    }
    const { lineageId } = await readHeader(newest.path);
    if (lineageId !== lineageOf(core.tables)) {
      throw new UsageError(
        `${directory} is the log archive of another database (lineage ${lineageId}). ` +
          'Set log_archive to a directory of its own.',
      );
    }
    return new LogArchiver(core, options, await lastFile(core, files));
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
    this.#stop.abort();
    this.#timer?.cancel();
  }

  /**
   * Archives the new commits, but makes no base backup, which may take long. A failure is logged:
   * the next start continues from the log.
   */
  async close(): Promise<void> {
    this.stop();
    await this.#archiveOrLog();
    this.#pin.release();
  }

  #schedule(delayMs: number): void {
    this.#timer = this.core.clock.after(delayMs, () => {
      void this.#archiveOrLog().then(() => {
        if (!this.#stop.signal.aborted)
          this.#schedule(this.options.intervalMs ?? defaultIntervalMs);
      });
    });
  }

  async #archive(): Promise<void> {
    const { core, last } = this;
    const { directory } = this.options;
    // An empty follower gets its lineage with the first copy of its leader.
    if (core.durable.seq === 0 && core.sealed) return;
    const continues = last !== undefined && logContinues(core, last);
    if (continues && last.seq === core.durable.seq) return;
    const { signal } = this.#stop;
    if (!continues && signal.aborted) return;
    const unfinished = join(directory, unfinishedName);
    const options = continues ? { sinceSeq: last.seq, fromFirst: true } : { signal };
    const { header } = await writeBackup(core, unfinished, options);
    const { seq, chainHash } = header;
    const name = continues ? logBackupName(last.seq + 1, seq) : baseBackupName(seq);
    const path = join(directory, name);
    renameSync(unfinished, path);
    syncDirectory(directory);
    this.last = { path, seq, chain: chainHash };
    this.#pin.seq = seq + 1;
  }

  async #archiveOrLog(): Promise<void> {
    await this.archive().catch((error: unknown) => {
      if (error === this.#stop.signal.reason) return;
      this.core.log.error({ err: error, directory: this.options.directory }, 'log archive failed');
    });
  }
}

/**
 * The file to continue: the oldest one from the last log file on that the log still continues. A
 * base backup may be newer than the last archived commit, and the commits before it must not be
 * missing from the archive.
 */
async function lastFile(core: Core, files: readonly ArchiveFile[]): Promise<LastFile | undefined> {
  const logEnd = files.find(({ firstSeq }) => firstSeq > 0)?.seq ?? 0;
  let found: LastFile | undefined;
  for (const { path, seq } of files.filter((file) => file.seq >= logEnd)) {
    const { chainHash } = await readHeader(path);
    const file = { path, seq, chain: chainHash };
    if (logContinues(core, file)) found = file;
  }
  return found;
}

/** False when the log was trimmed, commits were taken back, or the file is missing. */
function logContinues(core: Core, { path, seq, chain }: LastFile): boolean {
  const { durable } = core;
  if (!existsSync(path)) return false;
  if (seq > durable.seq || seq + 1 < durable.oldestSeq) return false;
  return sameHash(chainAt(core, durable, seq), chain);
}
