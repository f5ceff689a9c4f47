import {
  closeSync,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  statfsSync,
  writeSync,
  type StatsFs,
} from 'node:fs';
import { dirname } from 'node:path';
import { messageOf, systemCode } from '@millrace/kit/errors';

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
