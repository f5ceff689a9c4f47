import { chmodSync, mkdirSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { dataDirectory } from '@millrace/kit/config';
import type { Log } from '@millrace/kit/log';

/** Creates the data directory, and restricts it to its owner. */
export function privateDirectory(path: string, log: Log): string {
  const directory = dataDirectory(path);
  const { mode, uid } = statSync(directory);
  const isOpen = (mode & 0o077) !== 0;
  const isShared = (mode & 0o1000) !== 0 || directory === homedir();
  if (isOpen && !isShared && uid === process.geteuid?.()) {
    chmodSync(directory, 0o700);
    log.info({ directory }, 'data directory restricted to its owner');
  }
  return directory;
}

/** Creates a private folder in the data directory. */
export function privateFolder(dataDir: string, name: string): string {
  const folder = join(dataDir, name);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}
