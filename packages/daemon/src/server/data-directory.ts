import { chmodSync, statSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { dataDirectory } from '@millrace/kit/config';
import type { Log } from '@millrace/kit/log';
import { makePrivateDirectory } from '@millrace/kit/private-files';
import { publishText } from '../storage/published-file.js';
import { addressFile } from '../storage/data-files.js';

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
  makePrivateDirectory(folder);
  return folder;
}

/** Publishes the daemon's URL for `ctl`. Returns a function that removes it. */
export function publishAddress(dataDir: string, url: string): () => void {
  return publishText(addressFile(dataDir), `${reachable(url)}\n`);
}

/** Replaces a wildcard address, which cannot be dialed, by loopback. */
function reachable(url: string): string {
  return url.replace('://0.0.0.0:', '://127.0.0.1:').replace('://[::]:', '://[::1]:');
}

let known: string | undefined;

/** The version of the package, shared by all packages of Millrace. */
export function daemonVersion(): string {
  if (known !== undefined) return known;
  // The package is two folders up from both src/server and dist/server.
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (known = (JSON.parse(text) as { version: string }).version);
}
