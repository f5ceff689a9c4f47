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

// A write that found no room has left the rest of the disk as good as full.
const nextToNothing = 4 * 2 ** 20;
/** About as much as one commit may need. */
const maxCommitBytes = 32 * 2 ** 20;

/** Bytes that this user may still write beside `path`; Infinity where the system does not tell. */
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

/** Whether the system says that there is no room. */
export function isOutOfRoom(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT', 'EFBIG'].includes(systemCode(error));
}

/** Whether a write to `path` failed for want of room. */
export function isDiskFull(error: unknown, path: string): boolean {
  if (isOutOfRoom(error)) return true;
  const text = messageOf(error);
  if (/no space left|quota exceeded|disk full|MDB_MAP_FULL|file too large/i.test(text)) return true;
  // LMDB calls it an input/output error when only a part of its pages went in.
  if (!/input\/output error/i.test(text)) return false;
  return freeBytes(path) < nextToNothing || !canGrow(path);
}

/**
 * Whether there is room behind the end of a file that nobody writes to just now. Tried, because
 * nothing else knows of quotas and limits.
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
