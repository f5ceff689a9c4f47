import { existsSync, lstatSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { UsageError } from '@millrace/kit/errors';
import { fileParts } from './file.js';
import type { BackupHeader } from './parts.js';

/** What to restore up to, inclusive: a commit number or a time. */
export type RestoreTarget = number | Date;

/** A file of a log archive: a base backup, or the commits from `firstSeq` to `seq`. */
export interface ArchiveFile {
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
export function archiveFiles(directory: string): ArchiveFile[] {
  const files = readdirSync(directory).flatMap((name) => {
    const found = namePattern.exec(name);
    if (!found) return [];
    return [
      { path: join(directory, name), firstSeq: Number(found[1] ?? 0), seq: Number(found[2]) },
    ];
  });
  return files.sort((a, b) => b.seq - a.seq);
}

export async function readHeader(file: string): Promise<BackupHeader> {
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
    if (to instanceof Date && (await readHeader(next.path)).createdAt > to) break;
  }
  return plan;
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
      `${place} has no base backup. Create one with: ctl db backup --base --out ${place}`,
    );
  }
  const { createdAt } = await readHeader(oldest.path);
  throw new UsageError(
    `${place} has no base backup that old. Its first one is at commit ${oldest.seq}, ` +
      `${createdAt.toISOString()}.`,
  );
}
