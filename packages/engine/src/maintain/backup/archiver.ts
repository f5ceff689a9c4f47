import { existsSync, lstatSync, readdirSync, statSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { UsageError } from '@millrace/kit/errors';
import { readBackup } from './reader.js';
import { fileParts, writeBackup } from './file.js';
import type { BackupHeader } from './frames.js';
import type { Timer } from '@millrace/kit/clock';
import { makePrivateDirectory } from '@millrace/kit/private-files';
import type { Core, LogPin } from '../../core/core.js';
import { lineageOf } from '../../storage/file/tables.js';
import type { Hash64 } from '../../value/bytes.js';
import { syncDirectory } from '../../storage/file/directory.js';
import { sameHash } from '../../watch/message.js';
import { batchChain, chainAt } from './backup.js';

/** What to restore up to, inclusive: a commit number or a time. */
export type RestoreTarget = number | Date;

/** A file of a log archive: a base backup, or the commits from `firstSeq` to `seq`. */
interface ArchiveFile {
  path: string;
  /** 0 for a base backup. */
  firstSeq: number;
  seq: number;
}

const namePattern = /^(?:base|log-(\d{12}))-(\d{12})\.backup$/;

const digits = (seq: number) => String(seq).padStart(12, '0');

export function baseBackupName(seq: number): string {
  return `base-${digits(seq)}.backup`;
}

export function logBackupName(firstSeq: number, seq: number): string {
  return `log-${digits(firstSeq)}-${digits(seq)}.backup`;
}

/** The files of an archive, newest first. */
function archiveFiles(directory: string): ArchiveFile[] {
  const files = readdirSync(directory).flatMap((name) => {
    const found = namePattern.exec(name);
    if (!found) return [];
    return [
      { path: join(directory, name), firstSeq: Number(found[1] ?? 0), seq: Number(found[2]) },
    ];
  });
  return files.sort((a, b) => b.seq - a.seq);
}

/** The newest file of an archive. */
export function newestBackup(directory: string): string | undefined {
  return archiveFiles(directory)[0]?.path;
}

async function readHeader(file: string): Promise<BackupHeader> {
  for await (const part of fileParts(file)) {
    if (part.kind === 'header') return part.header;
  }
  throw new Error(`${file} has no header`);
}

export function isArchive(path: string): boolean {
  return existsSync(path) && statSync(path).isDirectory();
}

/** The base backup and the log files that lead to the target, in order. */
export async function planRestore(
  from: readonly string[],
  to: RestoreTarget | undefined,
): Promise<string[]> {
  const place = from.join(', ');
  const files = await filesOf(from);
  const base = await findBase(place, files, to);
  const plan = [base.path];
  for (let at = base.seq; typeof to !== 'number' || at < to;) {
    const next = files.find(({ firstSeq, seq }) => firstSeq > 0 && firstSeq <= at + 1 && seq > at);
    if (!next) {
      const later = files.findLast(({ seq }) => seq > at);
      if (later) throw gapAfter(at, later);
      if (typeof to !== 'number') break;
      throw new UsageError(
        `${place} ends at commit ${at}; it does not reach commit ${to}. A running server archives ` +
          'new commits at every log_archive_interval and when it stops.',
      );
    }
    plan.push(next.path);
    at = next.seq;
    if (to instanceof Date && (await goesBeyond(next.path, to))) break;
  }
  return plan;
}

/**
 * Whether a file has commits after this time. When it was created does not tell: earlier commits
 * that were not durable yet are in the next file.
 */
async function goesBeyond(path: string, to: Date): Promise<boolean> {
  if ((await readHeader(path)).createdAt <= to) return false;
  for await (const part of readBackup(fileParts(path), path)) {
    const commits =
      part.kind === 'commits' ? part.commits : part.kind === 'batches' ? part.batches : [];
    if (commits.some(({ at }) => at > to.getTime())) return true;
  }
  return false;
}

/** Files of the archives and the given backup files, newest first. */
async function filesOf(from: readonly string[]): Promise<ArchiveFile[]> {
  const files: ArchiveFile[] = [];
  for (const path of from) {
    if (isArchive(path)) {
      const found = archiveFiles(path);
      for (const file of found) checkOwnFile(file.path);
      files.push(...found);
      continue;
    }
    const { seq, sinceSeq } = await readHeader(path);
    files.push({ path, firstSeq: sinceSeq > 0 ? sinceSeq + 1 : 0, seq });
  }
  return files.sort((a, b) => b.seq - a.seq);
}

/** An archive contains only regular files: a link could lead anywhere. */
function checkOwnFile(path: string): void {
  if (lstatSync(path).isFile()) return;
  throw new UsageError(`${path} is not a file but a link or something else. Remove it.`);
}

function gapAfter(seq: number, { path, firstSeq, seq: last }: ArchiveFile): UsageError {
  return new UsageError(
    `The commits from ${seq + 1} to ${firstSeq > 0 ? firstSeq - 1 : last} are missing before ` +
      `${path}. Restore the missing file of the archive, or restore with --to ${seq}.`,
  );
}

/** The newest base backup that is not after the target. */
async function findBase(
  place: string,
  files: readonly ArchiveFile[],
  to: RestoreTarget | undefined,
): Promise<ArchiveFile> {
  const bases = files.filter(({ firstSeq }) => firstSeq === 0);
  for (const base of bases) {
    const isEarly =
      to instanceof Date
        ? (await readHeader(base.path)).createdAt <= to
        : base.seq <= (to ?? Infinity);
    if (isEarly) return base;
  }
  const oldest = bases.at(-1);
  if (!oldest) {
    throw new UsageError(
      `${place} has no base backup. Take one with: ctl db backup --base (or ctl queue backup --base), ` +
        'or name one with --from.',
    );
  }
  const { createdAt } = await readHeader(oldest.path);
  throw new UsageError(
    `${place} has no base backup that old. Its first one is at commit ${oldest.seq}, ` +
      `${createdAt.toISOString()}.`,
  );
}

export interface LogArchiveOptions {
  /** Archive of one database: base backups and the commits after them. */
  directory: string;
  /** How often new commits are archived; 10 s by default. */
  intervalMs?: number;
  /** Archive batches of the log, which have raw rows: see `BackupOptions`. */
  batches?: boolean;
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
    const seq = last?.seq ?? endOf(core, options);
    this.#pin = options.batches ? core.pinLog(Infinity, seq) : core.pinLog(seq + 1);
    this.#schedule(0);
  }

  static async open(core: Core, options: LogArchiveOptions): Promise<LogArchiver> {
    const { directory } = options;
    makePrivateDirectory(directory);
    for (const name of readdirSync(directory)) {
      if (name.startsWith(unfinishedName)) rmSync(join(directory, name), { force: true });
    }
    const files = archiveFiles(directory);
    const [newest] = files;
    if (!newest) {
      const archiver = new LogArchiver(core, options, undefined);
      // At once, so that every commit can be restored to, from the first on.
      if (endOf(core, options) === 0) await archiver.#archiveOrLog();
      return archiver;
    }
    const { lineageId } = await readHeader(newest.path);
    if (lineageId !== lineageOf(core.tables)) {
      throw new UsageError(
        `${directory} is the log archive of another database (lineage ${lineageId}). ` +
          'Set log_archive to a directory of its own.',
      );
    }
    return new LogArchiver(core, options, await lastFile(core, options, files));
  }

  /** Commits that are not archived yet. */
  get lagCommits(): number {
    return Math.max(0, endOf(this.core, this.options) - (this.last?.seq ?? 0));
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
    const { directory, batches } = this.options;
    const end = endOf(core, this.options);
    // An empty follower gets its lineage with the first copy of its leader.
    if (end === 0 && core.sealed) return;
    const continues = last !== undefined && logContinues(core, this.options, last);
    if (continues && last.seq === end) return;
    const { signal } = this.#stop;
    if (!continues && signal.aborted) return;
    const unfinished = join(directory, unfinishedName);
    const options = continues ? { sinceSeq: last.seq, fromFirst: true } : { signal };
    const { header } = await writeBackup(core, unfinished, { ...options, batches });
    const { seq, chainHash } = header;
    const name = continues ? logBackupName(last.seq + 1, seq) : baseBackupName(seq);
    const path = join(directory, name);
    renameSync(unfinished, path);
    syncDirectory(directory);
    this.last = { path, seq, chain: chainHash };
    if (batches) this.#pin.lsn = seq;
    else this.#pin.seq = seq + 1;
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
async function lastFile(
  core: Core,
  options: LogArchiveOptions,
  files: readonly ArchiveFile[],
): Promise<LastFile | undefined> {
  const logEnd = files.find(({ firstSeq }) => firstSeq > 0)?.seq ?? 0;
  let found: LastFile | undefined;
  for (const { path, seq } of files.filter((file) => file.seq >= logEnd)) {
    const { chainHash } = await readHeader(path);
    const file = { path, seq, chain: chainHash };
    if (logContinues(core, options, file)) found = file;
  }
  return found;
}

/** False when the log was trimmed, commits were taken back, or the file is missing. */
function logContinues(
  core: Core,
  options: LogArchiveOptions,
  { path, seq, chain }: LastFile,
): boolean {
  const { durable, store } = core;
  if (!existsSync(path) || seq > endOf(core, options)) return false;
  if (options.batches) {
    return seq >= store.log!.firstLsn && sameHash(batchChain(core, seq), chain);
  }
  if (seq + 1 < durable.oldestSeq) return false;
  return sameHash(chainAt(core, durable, seq), chain);
}

/** The last durable commit, or batch. */
function endOf({ durable, store }: Core, { batches }: LogArchiveOptions): number {
  return batches ? store.durableLsn : durable.seq;
}
