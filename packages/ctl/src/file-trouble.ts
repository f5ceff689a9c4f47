import { systemCode } from '@millrace/kit/errors';

const fileTroubles: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or directory',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EISDIR: 'is a directory, not a file',
  ENOTDIR: 'a part of it is a file, not a directory',
  ENOSPC: 'the disk is full',
  EROFS: 'the file system is read-only',
};

/** What is wrong with which file, in words; undefined for an error that is not about a file. */
export function fileTrouble(error: unknown): string | undefined {
  const { path } = error as { path?: unknown };
  const trouble = fileTroubles[systemCode(error)];
  return typeof path === 'string' && trouble ? `${path}: ${trouble}.` : undefined;
}
