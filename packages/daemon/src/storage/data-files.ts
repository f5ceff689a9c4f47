import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/*
 * File locations of the daemon. `ctl` finds a running daemon and its token with these, so both
 * sides use the same definitions.
 */

type Environment = Readonly<Record<string, string | undefined>>;

/** The config file that is read when none is named: `$XDG_CONFIG_HOME/millrace/config.yaml`. */
export function defaultConfigFile(environment: Environment): string {
  return join(baseOf(environment, 'XDG_CONFIG_HOME', '.config'), 'millrace', 'config.yaml');
}

/** The data directory that is used when none is named: `$XDG_DATA_HOME/millrace`. */
export function defaultDataDirectory(environment: Environment): string {
  return join(baseOf(environment, 'XDG_DATA_HOME', join('.local', 'share')), 'millrace');
}

/** The bearer token, one line, mode 0600. `MILLRACE_TOKEN` overrides it. */
export function tokenFile(dataDir: string): string {
  return join(dataDir, 'daemon.token');
}

/** Logins of browsers, by the hashes of their cookies. */
export function loginsFile(dataDir: string): string {
  return join(dataDir, 'daemon-logins.json');
}

/** The token that may only read, likewise. `MILLRACE_READ_ONLY_TOKEN` overrides it. */
export function readOnlyTokenFile(dataDir: string): string {
  return join(dataDir, 'token-read-only');
}

/** Signing secret of webhook alerts, one line, mode 0600, unless a setting gives it. */
export function webhookSecretFile(dataDir: string): string {
  return join(dataDir, 'webhook-secret');
}

/** Contains the URL of the running daemon, one line; removed at a clean stop. */
export function addressFile(dataDir: string): string {
  return join(dataDir, 'daemon.url');
}

/** Output of `--help` of installed programs; can be deleted at any time. */
export function programHelpFile(dataDir: string): string {
  return join(dataDir, 'program-help.json');
}

/** The database engine's own directory. */
export function storeDirectory(dataDir: string): string {
  return join(dataDir, 'daemon');
}

function baseOf(environment: Environment, variable: string, otherwise: string): string {
  const base = environment[variable];
  // The XDG specification says to ignore relative paths.
  if (base && isAbsolute(base)) return base;
  return join(environment['HOME'] || homedir(), otherwise);
}
