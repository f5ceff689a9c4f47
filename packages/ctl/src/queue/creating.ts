import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { parseDocument } from 'yaml';
import { editCredentials, type CredentialsFile } from '../base/credentials-file.js';
import { dataDirectory } from '../base/data-directory.js';
import { queueSettingsFile } from '../base/places.js';
import { checkedUrl, isLocalUrl } from '../base/urls.js';
import { rest } from '../base/rest.js';
import type { Flags, Tools } from '../base/tools.js';
import { queueApi, type QueueApi, type QueueFlags } from './api.js';
import { isSameServer, runningUp } from './locate.js';

type CreateFlags = Flags<'callbackUrl config', 'pull'>;

interface NewQueueFlags extends CreateFlags, QueueFlags {
  /** The former name of `--url`. */
  server?: string;
}

/** A server looks at its config file at least this often. */
const reloadMs = 10_000;
const pollMs = 200;

const settingsFile: CredentialsFile = {
  list: 'callback_allowlist',
  empty: '',
  check: (text, file) => {
    const [error] = parseDocument(text).errors;
    if (error) throw new UsageError(`${file}:${error.linePos?.[0].line ?? 1}: not valid YAML`);
  },
};

/** Creates a queue with a minimal config. */
export async function createQueue(name: string, given: NewQueueFlags, tools: Tools): Promise<void> {
  const { place, flags } = namedFlags(given, tools);
  const { terminal } = tools;
  const api = queueApi(place, tools);
  const { callbackUrl } = flags;
  if ((callbackUrl === undefined) === (flags.pull !== true)) {
    throw new UsageError(
      'Give either --callback-url URL, which the server calls, or --pull, for workers. ' +
        '--url is the address of the server.',
    );
  }
  await refuseExisting(api, name);
  const { err, json } = terminal;
  let written;
  if (callbackUrl === undefined) {
    written = await put(api, name, { protocol: 'pull' });
  } else {
    const isGrpc = /^grpcs?:\/\//i.test(callbackUrl);
    if (!isGrpc) checkedUrl(callbackUrl, '--callback-url', 'http://127.0.0.1:9000/run');
    const callback = { url: callbackUrl, ...(isGrpc && { protocol: 'grpc' }) };
    written = await put(api, name, callback).catch(async (error: unknown) => {
      const file = settingsOf(api, flags, terminal);
      if (!isNotAllowed(error) || file === undefined) throw advised(error);
      await allow(file, callback.url);
      if (!json) err.write(`Allowed ${callback.url} in ${file}.\n`);
      return putAfterReload(api, name, callback);
    });
  }
  terminal.show(written, `Created the queue ${name}.\n`);
}

/**
 * `--url` was the callback and `--server` the server. The old meaning is unambiguous when there is
 * neither --pull nor --callback-url: a queue needs one of them.
 */
function namedFlags(
  { server, url, tokenFile, data, ...flags }: NewQueueFlags,
  { terminal: { err, json } }: Pick<Tools, 'terminal'>,
): { place: QueueFlags; flags: CreateFlags } {
  const isOld = url !== undefined && flags.callbackUrl === undefined && flags.pull !== true;
  if (isOld && !json) err.write('--url is the address of the server now; use --callback-url.\n');
  const address = server ?? (isOld ? undefined : url);
  const place = {
    ...(address !== undefined && { url: address }),
    ...(tokenFile !== undefined && { tokenFile }),
    ...(data !== undefined && { data }),
  };
  return { place, flags: isOld ? { ...flags, callbackUrl: url } : flags };
}

async function put(api: QueueApi, queue: string, callback: object) {
  return (await api.call('putQueueConfig', { queue, body: { callback } })).body;
}

async function refuseExisting(api: QueueApi, queue: string): Promise<void> {
  try {
    await api.call('getQueueConfig', { queue });
  } catch (error) {
    if (error instanceof Refusal && error.code === 'QUEUE_NOT_FOUND') return;
    throw error;
  }
  throw new Refusal(
    'ALREADY_EXISTS',
    `The queue ${queue} exists. Change it with: ctl queue config set ${queue} FILE`,
  );
}

async function putAfterReload(api: QueueApi, queue: string, callback: object) {
  for (let leftMs = reloadMs; ; leftMs -= pollMs) {
    try {
      return await put(api, queue, callback);
    } catch (error) {
      if (!isNotAllowed(error) || leftMs <= 0) throw error;
      await rest(pollMs);
    }
  }
}

function isNotAllowed(error: unknown): error is Refusal {
  return error instanceof Refusal && error.code === 'CALLBACK_URL_NOT_ALLOWED';
}

function advised(error: unknown): unknown {
  if (!isNotAllowed(error)) return error;
  const advice = 'For a server on this machine, name its config file with --config.';
  return new Refusal(error.code, `${error.detail} ${advice}`, { cause: error });
}

/** The config file of a server on this machine: `--config`, or that of the running `ctl up`. */
function settingsOf(
  { url }: QueueApi,
  { config }: CreateFlags,
  { env }: Tools['terminal'],
): string | undefined {
  if (!isLocalUrl(url)) return undefined;
  if (config !== undefined) return resolve(config);
  const dataDir = dataDirectory(undefined, env);
  const running = runningUp(dataDir);
  return running && isSameServer(running.queueUrl, url) ? queueSettingsFile(dataDir) : undefined;
}

/** Adds this one URL to the allowlist. */
async function allow(file: string, url: string): Promise<void> {
  const { protocol, hostname, port, pathname } = new URL(url);
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  const networks = networksOf(host);
  await editCredentials(file, settingsFile, (list, document) => {
    list.add(
      document.createNode({
        scheme: protocol.slice(0, -1),
        host: hostname,
        ...(port !== '' && { port: Number(port) }),
        ...(!protocol.startsWith('grpc') && { path_prefix: pathname }),
        ...(networks.length > 0 && { networks }),
      }),
    );
  });
}

/** An address opens itself and `localhost` the loopback; other names must be public. */
function networksOf(host: string): string[] {
  if (isIP(host) === 4) return [`${host}/32`];
  if (isIP(host) === 6) return [`${host}/128`];
  return host === 'localhost' ? ['127.0.0.0/8', '::1/128'] : [];
}
