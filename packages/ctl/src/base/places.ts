import { accessSync, constants, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, isAbsolute, join } from 'node:path';
import { ifThere } from '@millrace/kit/errors';

/*
 * Files by which the command line finds a daemon of this machine. The daemon defines them in its
 * own settings, which are too slow to load here; a test compares the two.
 */

/** Default config file of the daemon. */
export function configFile(env: Readonly<Record<string, string | undefined>>): string {
  const base = env['XDG_CONFIG_HOME'];
  const folder = base && isAbsolute(base) ? base : join(env['HOME'] || homedir(), '.config');
  return join(folder, 'millrace', 'config.yaml');
}

/** Contains the URL of the running daemon. */
export function addressFile(dataDir: string): string {
  return join(dataDir, 'daemon.url');
}

/** Contains the bearer token. */
export function tokenFile(dataDir: string): string {
  return join(dataDir, 'daemon.token');
}

/** Contains the secrets of the queue that `ctl up` runs, including the daemon's token. */
export function queueSecretsFile(dataDir: string): string {
  return join(dataDir, 'queue-secrets.yaml');
}

/** Contains the tokens of the queue that `ctl up` runs. */
export function queueTokensFile(dataDir: string): string {
  return join(dataDir, 'queue-tokens.yaml');
}

/** Settings of the queue that `ctl up` runs. */
export function queueSettingsFile(dataDir: string): string {
  return join(dataDir, 'queue.yaml');
}

/** Contains the read-only token. */
export function readOnlyTokenFile(dataDir: string): string {
  return join(dataDir, 'token-read-only');
}

/** The single line of a file, or undefined if it is missing or empty. */
export function lineOf(file: string): string | undefined {
  return ifThere(() => readFileSync(file, 'utf8'))?.trim() || undefined;
}

/** The file of a program on the search path. */
export function findOnPath(program: string, path = ''): string | undefined {
  const folders = path.split(delimiter).filter((folder) => folder !== '');
  return folders.map((folder) => join(folder, program)).find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
