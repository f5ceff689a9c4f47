import { systemCode } from '@millrace/kit/errors';

const fileTroubles: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or directory',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EISDIR: 'is a directory, not a file',
  ENOTDIR: 'a parent of it is a file, not a directory',
  ENOSPC: 'the disk is full',
  EROFS: 'the file system is read-only',
};

/** Describes a file error, or undefined for other errors. */
export function fileErrorText(error: unknown): string | undefined {
  const { path } = error as { path?: unknown };
  const trouble = fileTroubles[systemCode(error)];
  return typeof path === 'string' && trouble ? `${path}: ${trouble}.` : undefined;
}

const fileCodes: Readonly<Record<string, string>> = {
  ENOENT: 'FILE_NOT_FOUND',
  EACCES: 'PERMISSION_DENIED',
  EPERM: 'PERMISSION_DENIED',
};

/** The code of a file error under --json. */
export function fileErrorCode(error: unknown): string {
  return fileCodes[systemCode(error)] ?? 'FILE_ERROR';
}
