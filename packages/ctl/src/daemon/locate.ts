import type { Flags } from '../base/tools.js';
import { existsSync } from 'node:fs';
import { isIP } from 'node:net';
import { Refusal } from '@millrace/kit/errors';
import { dataDirectory } from '../base/data-directory.js';
import { checkedUrl, isLocalUrl } from '../base/urls.js';
import { addressFile, configFile, lineOf, readOnlyTokenFile, tokenFile } from '../base/places.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** Options of every command that talks to a daemon. */
export type DaemonFlags = Flags<'url data'>;

export interface DaemonPlace {
  /** Without a trailing slash. */
  readonly url: string;
  readonly token: string | undefined;
}

/** The part of a config file that locates the daemon. */
interface LocalSettings {
  readonly dataDir: string;
  readonly listenUrl: string;
  readonly token: string | undefined;
}

const defaultUrl = 'http://127.0.0.1:8765';

/**
 * Finds the daemon: `--url`, else MILLRACE_URL, else the address file in the data directory, else
 * the default address. With a named directory, only the daemon of that directory counts. A token
 * file of this machine is never sent to another machine.
 */
export async function locate(flags: DaemonFlags, env: Environment): Promise<DaemonPlace> {
  const given = flags.url ?? (flags.data === undefined ? env['MILLRACE_URL'] : undefined);
  const named = given
    ? checkedUrl(given, flags.url ? '--url' : '$MILLRACE_URL', defaultUrl)
    : undefined;
  const dataDir = dataDirectory(flags.data, env);
  const said = named ?? lineOf(addressFile(dataDir));
  if (said === undefined && flags.data !== undefined) throw noneOn(dataDir);
  const token =
    env['MILLRACE_TOKEN']?.trim() || (isLocal(named) ? tokenIn(dataDir, env) : undefined);
  if (said !== undefined && token !== undefined) return place(said, token);
  if (!isLocal(named)) return place(said ?? defaultUrl, token);
  // Only a config file could say more, and reading it is slow.
  const settings = flags.data === undefined ? await localSettings(env) : undefined;
  return place(
    said ??
      (settings && lineOf(addressFile(settings.dataDir))) ??
      settings?.listenUrl ??
      defaultUrl,
    token ?? settings?.token ?? (settings && tokenIn(settings.dataDir, env)),
  );
}

/** A running daemon leaves its address in its data directory. */
function noneOn(dataDir: string): Refusal {
  return new Refusal(
    'UNAVAILABLE',
    `no daemon is running on the data in ${dataDir}. Start one with \`ctl daemon serve\` or ` +
      '`ctl up`, or name another with --url.',
  );
}

function place(url: string, token: string | undefined): DaemonPlace {
  return { url: checkedUrl(url, 'the address file', defaultUrl), token };
}

function tokenIn(dataDir: string, env: Environment): string | undefined {
  return (
    lineOf(tokenFile(dataDir)) ??
    (env['MILLRACE_READ_ONLY_TOKEN'] || lineOf(readOnlyTokenFile(dataDir)))
  );
}

function isLocal(url: string | undefined): boolean {
  return url === undefined || isLocalUrl(url);
}

async function localSettings(env: Environment): Promise<LocalSettings | undefined> {
  if (!existsSync(configFile(env))) return undefined;
  const { loadDaemonSettings } = await import('./local-settings.js');
  const { values, dataDir } = loadDaemonSettings({}, env);
  const { host, port } = values.listen;
  // A daemon that listens on all interfaces listens on loopback too.
  const near = ['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host;
  const listenUrl = `http://${isIP(near) === 6 ? `[${near}]` : near}:${port}`;
  return { dataDir, listenUrl: port === 0 ? defaultUrl : listenUrl, token: values.token };
}
