import { chmodSync, lstatSync, mkdirSync, statSync, unlinkSync } from 'node:fs';
import { createConnection, type Server } from 'node:net';
import { dirname } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import { messageOf, systemCode, UsageError } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';

/** The most bytes that a path may have in a socket's address on every system. */
export const longestSocketPath = 103;

export function fitsSocket(path: string): boolean {
  return Buffer.byteLength(path) <= longestSocketPath;
}

/**
 * Listens on a Unix socket that its owner alone can open: 0600, in a directory of 0700. Whoever
 * connects there is trusted, so the socket is never open to others, not even for a moment.
 */
export async function listenOnSocket(server: Server, path: string, log: Log): Promise<void> {
  if (!fitsSocket(path)) {
    throw new UsageError(
      `socket ${path} is too long: a socket's path has at most ${longestSocketPath} bytes`,
    );
  }
  makePrivateDirectory(dirname(path), log);
  await removeStale(path);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      // Node binds a path at once, so the mask holds for this file and no other.
      withMask(0o177, () =>
        server.listen(path, () => {
          server.removeListener('error', reject);
          resolve();
        }),
      );
    });
    chmodSync(path, 0o600);
  } catch (error) {
    throw new UsageError(`socket ${path} cannot be listened at: ${messageOf(error)}`);
  }
}

/** Threads cannot set the mask; for them the directory and the mode that follows must do. */
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
    throw new UsageError(
      `the directory of socket ${directory} cannot be made: ${messageOf(error)}`,
    );
  }
  const mode = statSync(directory).mode & 0o777;
  if ((mode & 0o077) === 0) return;
  log.warn(
    { directory, mode: mode.toString(8) },
    'others may enter the directory of the socket; chmod 700 keeps them out',
  );
}

/** Removes the socket of a server that was killed. One that answers is in use. */
async function removeStale(path: string): Promise<void> {
  let isSocket: boolean;
  try {
    isSocket = lstatSync(path).isSocket();
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return;
    throw new UsageError(`socket ${path}: ${messageOf(error)}`);
  }
  if (!isSocket) throw new UsageError(`socket ${path} is another file; name a path that is free`);
  if (await answers(path)) {
    throw new UsageError(`socket ${path} is in use by another server; name another one`);
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
