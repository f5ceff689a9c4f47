import { rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { systemClock, systemRandom } from '../base/clock-and-random.js';
import { messageOf, systemCode, UsageError } from '../base/errors.js';
import { makePrivateDirectory } from '../base/private-files.js';

/**
 * Ensures that `path` is a writable directory, created with mode 700 when it is new. Returns its
 * absolute path.
 */
export function dataDirectory(path: string): string {
  const directory = resolve(path);
  try {
    makePrivateDirectory(directory);
  } catch (error) {
    throw new UsageError(creationProblem(directory, error));
  }
  const probe = join(directory, `.probe-${systemRandom.ulid(systemClock.now())}`);
  try {
    writeFileSync(probe, 'probe', { flag: 'wx', mode: 0o600 });
    rmSync(probe);
  } catch (error) {
    throw new UsageError(
      `data directory ${directory} is not writable by uid ${uid()}: ${reason(error)}`,
    );
  }
  return directory;
}

function creationProblem(directory: string, error: unknown): string {
  const code = systemCode(error);
  if (code === 'EEXIST' || code === 'ENOTDIR') {
    const file = nearestExisting(directory);
    return file === directory
      ? `data directory ${directory} is a file; name a directory`
      : `data directory ${directory} cannot be created: ${file} is a file`;
  }
  return `data directory ${directory} cannot be created by uid ${uid()}: ${reason(error)}`;
}

function nearestExisting(path: string): string {
  let at = path;
  while (dirname(at) !== at) {
    try {
      if (statSync(at, { throwIfNoEntry: false })) return at;
    } catch (error) {
      if (systemCode(error) !== 'ENOTDIR') throw error;
    }
    at = dirname(at);
  }
  return at;
}

function reason(error: unknown): string {
  switch (systemCode(error)) {
    case 'EACCES':
    case 'EPERM':
      return 'permission denied';
    case 'EROFS':
      return 'the file system is read-only';
    case 'ENOSPC':
      return 'no space left on the device';
    case 'EDQUOT':
      return 'the disk quota is used up';
    default:
      return messageOf(error);
  }
}

function uid(): string {
  return String(process.geteuid?.() ?? '?');
}
