import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { systemCode } from '@millrace/kit/errors';

/*
 * The files by which the command line finds a daemon of this machine. The daemon names them in its
 * own settings, which take longer to load than a whole `ctl backend list` may; a test holds the
 * two against each other.
 */

/** The settings of the daemon that are read when no others are named. */
export function configFile(env: Readonly<Record<string, string | undefined>>): string {
  const base = env['XDG_CONFIG_HOME'];
  const folder = base && isAbsolute(base) ? base : join(env['HOME'] || homedir(), '.config');
  return join(folder, 'millrace', 'config.yaml');
}

/** Holds the URL of the running daemon. */
export function addressFile(dataDir: string): string {
  return join(dataDir, 'daemon.url');
}

/** Holds the bearer token. */
export function tokenFile(dataDir: string): string {
  return join(dataDir, 'daemon.token');
}

/** Holds the token that may only read. */
export function readOnlyTokenFile(dataDir: string): string {
  return join(dataDir, 'token-read-only');
}

/** The one line of a file, or undefined when there is no such file or nothing in it. */
export function lineOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim() || undefined;
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(systemCode(error))) return undefined;
    throw error;
  }
}
