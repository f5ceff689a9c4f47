import {
  closeSync,
  existsSync,
  fdatasync,
  fdatasyncSync,
  fstatSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  write,
  writeSync,
  ftruncateSync,
  statfsSync,
  type StatsFs,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, basename } from 'node:path';
import { messageOf, systemCode } from '@millrace/kit/errors';
import { makePrivateDirectory } from '@millrace/kit/private-files';
import { refuse } from '../../value/documents.js';

/** An open file of the log. */
export interface LogFile {
  /** Writes all bytes. Small writes finish at once and return nothing to wait for. */
  write(bytes: Buffer, at: number): Promise<void> | undefined;
  /**
   * Makes everything written so far durable: on the event loop, with nothing to wait for, if it may
   * block that.
   */
  sync(mayBlock?: boolean): Promise<void> | undefined;
  /** Fills `target` from offset `at`; returns the number of bytes read. */
  read(target: Buffer, at: number): number;
  size(): number;
  close(): void;
}

/**
 * The file operations of the log. Tests replace them: to fail at any call, or to record every write
 * and sync and build the disk that a power cut would leave.
 */
export interface FileLayer {
  open(path: string, mode: 'read' | 'write' | 'create'): LogFile;
  rename(from: string, to: string): void;
  remove(path: string): void;
  list(directory: string): string[];
  makeDirectory(directory: string): void;
  removeDirectory(directory: string): void;
  syncDirectory(directory: string): Promise<void>;
}

/** A larger copy into the page cache would block the event loop for too long. */
const maxSyncWriteBytes = 128 * 1024;
const flags = { read: 'r', write: 'r+', create: 'w+' } as const;

export const nodeFiles: FileLayer = {
  open: (path, mode) => new NodeFile(openSync(path, flags[mode], 0o600)),
  rename: renameSync,
  remove: (path) => rmSync(path, { force: true }),
  list: (directory) => (existsSync(directory) ? readdirSync(directory) : []),
  makeDirectory: makePrivateDirectory,
  removeDirectory: (directory) => rmSync(directory, { recursive: true, force: true }),
  async syncDirectory(directory) {
    const handle = await open(directory, 'r');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  },
};

class NodeFile implements LogFile {
  constructor(private readonly descriptor: number) {}

  write(bytes: Buffer, at: number): Promise<void> | undefined {
    if (bytes.length > maxSyncWriteBytes) return this.#writeInPool(bytes, at);
    for (let done = 0; done < bytes.length;) {
      done += writeSync(this.descriptor, bytes, done, bytes.length - done, at + done);
    }
    return undefined;
  }

  sync(mayBlock = false): Promise<void> | undefined {
    if (mayBlock) {
      fdatasyncSync(this.descriptor);
      return undefined;
    }
    return new Promise((resolve, reject) => {
      fdatasync(this.descriptor, (error) => (error ? reject(error) : resolve()));
    });
  }

  read(target: Buffer, at: number): number {
    let done = 0;
    while (done < target.length) {
      const count = readSync(this.descriptor, target, done, target.length - done, at + done);
      if (count === 0) break;
      done += count;
    }
    return done;
  }

  size(): number {
    return fstatSync(this.descriptor).size;
  }

  close(): void {
    closeSync(this.descriptor);
  }

  async #writeInPool(bytes: Buffer, at: number): Promise<void> {
    for (let done = 0; done < bytes.length;) {
      done += await new Promise<number>((resolve, reject) => {
        const left = bytes.length - done;
        write(this.descriptor, bytes, done, left, at + done, (error, count) =>
          error ? reject(error) : resolve(count),
        );
      });
    }
  }
}

// With less than this free, a failed write counts as a full disk.
const minFreeBytes = 4 * 2 ** 20;
/** Upper estimate of the size of one commit. */
const maxCommitBytes = 32 * 2 ** 20;

/** Bytes that this user may still write beside `path`; Infinity where the system cannot say. */
export function freeBytes(path: string): number {
  let stats: StatsFs;
  try {
    stats = statfsSync(dirname(path));
  } catch (error) {
    if (systemCode(error) === '') throw error;
    return Infinity;
  }
  return stats.bavail * stats.bsize;
}

/** Whether the system reports a full disk. */
export function isOutOfRoom(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT', 'EFBIG'].includes(systemCode(error));
}

/** Whether a write to `path` failed because the disk is full. */
export function isDiskFull(error: unknown, path: string): boolean {
  if (isOutOfRoom(error)) return true;
  const text = messageOf(error);
  if (/no space left|quota exceeded|disk full|MDB_MAP_FULL|file too large/i.test(text)) return true;
  // LMDB reports an input/output error when only a part of its pages was written.
  if (!/input\/output error/i.test(text)) return false;
  return freeBytes(path) < minFreeBytes || !canGrow(path);
}

/**
 * Whether a file that is not being written can grow. It tries, because the system reports quotas
 * and limits in no other way.
 */
function canGrow(path: string): boolean {
  if (!existsSync(path)) return true;
  const file = openSync(path, 'r+');
  const { size } = fstatSync(file);
  const piece = Buffer.alloc(2 ** 20);
  try {
    for (let at = 0; at < maxCommitBytes; at += piece.length) {
      if (writeSync(file, piece, 0, piece.length, size + at) < piece.length) return false;
    }
    return true;
  } catch (error) {
    if (systemCode(error) === '') throw error;
    return false;
  } finally {
    ftruncateSync(file, size);
    closeSync(file);
  }
}

/**
 * Errors of LMDB for invalid content of its file, and for a transaction that has read it.
 * MDB_BAD_VALSIZE and MDB_BAD_RSLOT are not among them: those are our own bugs.
 */
const damage =
  /\bMDB_(?:BAD_DBI|BAD_TXN|CORRUPTED|CURSOR_FULL|INCOMPATIBLE|INVALID|PAGE_NOTFOUND|PROBLEM|VERSION_MISMATCH)\b.*/;

/**
 * The log failed for another reason than a full disk. After a failed fsync the content of the disk
 * is unknown, and the next fsync may succeed without having written it: the log must stop.
 */
export class LogFailed extends Error {}

/**
 * Turns errors of LMDB and the system into refusals that say what to do; returns others unchanged.
 */
export function explainStorageError(error: unknown, path: string): unknown {
  if (error instanceof LogFailed) return stopped(error);
  if (!isDiskFull(error, path)) return explainDamage(error, path);
  return refuse(
    'DISK_FULL',
    'The disk is full. Nothing of this write was kept; free some space and try again.',
    undefined,
    { cause: error },
  );
}

function stopped(error: LogFailed) {
  return refuse(
    'STORAGE_FAILED',
    `The log could not be written (${messageOf(error.cause)}). Whether the last writes are on disk ` +
      'is not known, so no more are taken. Check the disk, then restart the server.',
    undefined,
    { cause: error },
  );
}

/** The same for reads. */
export function explainDamage(error: unknown, path: string): unknown {
  const found = damage.exec(messageOf(error));
  return found ? damaged(`The file ${basename(path)} is damaged (${found[0]}).`, error) : error;
}

/** Refuses to continue with damaged data. */
function damaged(what: string, cause?: unknown) {
  return refuse(
    'CORRUPT',
    `${what} Stop the server and see how much with "ctl db verify"; then put the file back as it ` +
      'was, or restore a backup into a new directory with "ctl db restore".',
    undefined,
    { cause },
  );
}
