import { chmodSync, lstatSync, mkdirSync, statSync, unlinkSync } from 'node:fs';
import { createConnection, type Server } from 'node:net';
import { dirname } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import { messageOf, systemCode, UsageError } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';

/** Maximum length of a Unix socket path that every supported system accepts. */
export const maxSocketPathBytes = 103;

export function fitsSocket(path: string): boolean {
  return Buffer.byteLength(path) <= maxSocketPathBytes;
}

/**
 * Listens on a Unix socket with mode 0600 in a directory with mode 0700. Connections there need no
 * key, so the socket must never be accessible to other users, not even briefly.
 */
export async function listenOnSocket(server: Server, path: string, log: Log): Promise<void> {
  if (!fitsSocket(path)) {
    throw new UsageError(
      `socket ${path} is too long: use a path of at most ${maxSocketPathBytes} bytes`,
    );
  }
  makePrivateDirectory(dirname(path), log);
  await removeStale(path);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      // Node binds a path synchronously, so the umask applies to this file only.
      withMask(0o177, () =>
        server.listen(path, () => {
          server.removeListener('error', reject);
          resolve();
        }),
      );
    });
    chmodSync(path, 0o600);
  } catch (error) {
    throw new UsageError(`cannot listen at socket ${path}: ${messageOf(error)}`);
  }
}

/** Worker threads cannot set the umask; the directory mode and the later chmod protect them. */
function withMask(mask: number, run: () => void): void {
  const before = isMainThread ? process.umask(mask) : undefined;
  try {
    run();
  } finally {
    if (before !== undefined) process.umask(before);
  }
}

function makePrivateDirectory(directory: string, log: Log): void {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new UsageError(`cannot create the socket directory ${directory}: ${messageOf(error)}`);
  }
  const mode = statSync(directory).mode & 0o777;
  if ((mode & 0o077) === 0) return;
  log.warn(
    { directory, mode: mode.toString(8) },
    'socket directory is accessible to other users, run chmod 700',
  );
}

/** Removes the socket of a killed server. A socket that accepts connections is in use. */
async function removeStale(path: string): Promise<void> {
  let isSocket: boolean;
  try {
    isSocket = lstatSync(path).isSocket();
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return;
    throw new UsageError(`socket ${path}: ${messageOf(error)}`);
  }
  if (!isSocket)
    throw new UsageError(`socket ${path} is an existing file of another type; use another path`);
  if (await answers(path)) {
    throw new UsageError(`socket ${path} is in use by another server; use another path`);
  }
  unlinkSync(path);
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = createConnection(path);
    const end = (isAlive: boolean) => {
      connection.destroy();
      resolve(isAlive);
    };
    connection.on('connect', () => end(true));
    connection.on('error', () => end(false));
  });
}
