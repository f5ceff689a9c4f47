import { basename } from 'node:path';
import { messageOf } from '@millrace/kit/errors';
import { refuse } from '../../value/refusal.js';
import { isDiskFull } from './disk.js';

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
export function damaged(what: string, cause?: unknown) {
  return refuse(
    'CORRUPT',
    `${what} Stop the server and see how much with "ctl db verify"; then put the file back as it ` +
      'was, or restore a backup into a new directory with "ctl db restore".',
    undefined,
    { cause },
  );
}
