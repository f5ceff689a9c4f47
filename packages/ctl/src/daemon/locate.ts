import { existsSync } from 'node:fs';
import { isIP } from 'node:net';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { dataDirectory } from '../data-directory.js';
import { isLocalUrl } from '../local-url.js';
import { addressFile, configFile, lineOf, readOnlyTokenFile, tokenFile } from './places.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** What every command that talks to a daemon takes. */
export interface DaemonFlags {
  url?: string;
  data?: string;
}

export interface DaemonPlace {
  /** Without a slash at the end. */
  readonly url: string;
  readonly token: string | undefined;
}

/** What a config file may say about where the daemon is. */
interface LocalSettings {
  readonly dataDir: string;
  readonly listenUrl: string;
  readonly token: string | undefined;
}

const usualUrl = 'http://127.0.0.1:8765';

/**
 * Where the daemon is: `--url`, else MILLRACE_URL, else the address file in the data directory,
 * else where it usually listens. Whoever names a directory means the daemon on it, and no other
 * that happens to run. A token file of this machine is not sent to another one.
 */
export async function locate(flags: DaemonFlags, env: Environment): Promise<DaemonPlace> {
  const given = flags.url ?? (flags.data === undefined ? env['MILLRACE_URL'] : undefined);
  const named = given ? checkedUrl(given, flags.url ? '--url' : '$MILLRACE_URL') : undefined;
  const dataDir = dataDirectory(flags.data, env);
  const said = named ?? lineOf(addressFile(dataDir));
  if (said === undefined && flags.data !== undefined) throw noneOn(dataDir);
  const token = env['MILLRACE_TOKEN'] || (isLocal(named) ? tokenIn(dataDir, env) : undefined);
  if (said !== undefined && token !== undefined) return place(said, token);
  if (!isLocal(named)) return place(said ?? usualUrl, token);
  // Only a config file could know more, and it is slow to read.
  const settings = flags.data === undefined ? await localSettings(env) : undefined;
  return place(
    said ?? (settings && lineOf(addressFile(settings.dataDir))) ?? settings?.listenUrl ?? usualUrl,
    token ?? settings?.token ?? (settings && tokenIn(settings.dataDir, env)),
  );
}

/** A daemon leaves its address in its data directory while it runs. */
function noneOn(dataDir: string): Refusal {
  return new Refusal(
    'UNAVAILABLE',
    `no daemon runs on the data in ${dataDir}. ` +
      'Start one with `ctl daemon serve` or `ctl up`, or name another with --url.',
  );
}

function place(url: string, token: string | undefined): DaemonPlace {
  return { url: checkedUrl(url, 'the address file'), token };
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

function checkedUrl(text: string, source: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    throw new UsageError(`${source} must be a URL such as ${usualUrl}, not "${text}".`);
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}

async function localSettings(env: Environment): Promise<LocalSettings | undefined> {
  if (!existsSync(configFile(env))) return undefined;
  const { loadDaemonSettings } = await import('./local-settings.js');
  const { values, dataDir } = loadDaemonSettings({}, env);
  const { host, port } = values.listen;
  // Whoever listens everywhere listens here as well.
  const near = ['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host;
  const listenUrl = `http://${isIP(near) === 6 ? `[${near}]` : near}:${port}`;
  return { dataDir, listenUrl: port === 0 ? usualUrl : listenUrl, token: values.token };
}
