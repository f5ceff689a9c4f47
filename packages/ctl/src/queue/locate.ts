import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf, Refusal, systemCode, UsageError } from '@millrace/kit/errors';
import { isAlive } from '../base/is-alive.js';
import { dataDirectory } from '../base/data-directory.js';
import { fileErrorCode, fileErrorText } from '../base/file-error.js';
import { checkedUrl, isLocalUrl } from '../base/urls.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** Options of every command that talks to a queue server. */
export interface QueueFlags {
  url?: string;
  tokenFile?: string;
  /** Data directory of a local `ctl up`. */
  data?: string;
}

export interface QueuePlace {
  /** Without a trailing slash. */
  readonly url: string;
  readonly token: string | undefined;
}

/** Default addresses of the queue server and its metrics. */
export const defaultUrl = 'http://127.0.0.1:8081';
export const defaultMetricsUrl = 'http://127.0.0.1:9464';

/**
 * Finds the server: `--url`, else MILLRACE_QUEUE_URL, else the address of a running `ctl up`, else
 * the default address. With a named data directory, only the `ctl up` of that directory counts.
 * The token comes from `--token-file`, else MILLRACE_QUEUE_TOKEN, else from
 * the owner token that `ctl up` created on this machine, which is never sent to another machine.
 */
export function locateQueue(flags: QueueFlags, env: Environment): QueuePlace {
  const dataDir = dataDirectory(flags.data, env);
  const url = urlFor(flags, dataDir, env);
  if (flags.tokenFile !== undefined) return { url, token: tokenIn(flags.tokenFile) };
  const given = env['MILLRACE_QUEUE_TOKEN'];
  if (given) return { url, token: checkedToken(given.trim(), '$MILLRACE_QUEUE_TOKEN') };
  return { url, token: isLocalUrl(url) ? ownersToken(dataDir) : undefined };
}

function urlFor({ url, data }: QueueFlags, dataDir: string, env: Environment): string {
  if (url !== undefined) return checkedUrl(url, '--url', defaultUrl);
  // `ctl up` leaves the address in the data directory, with its process id.
  const running = runningUp(dataDir)?.queueUrl;
  if (data !== undefined && running === undefined) {
    throw new Refusal(
      'UNAVAILABLE',
      `no queue is running on the data in ${dataDir}. Start it with \`ctl up --data\` or ` +
        '`ctl queue serve --data`, or name a server with --url.',
    );
  }
  const given = data === undefined ? env['MILLRACE_QUEUE_URL'] : undefined;
  return checkedUrl(given || running || defaultUrl, '$MILLRACE_QUEUE_URL', defaultUrl);
}

function tokenIn(file: string): string {
  try {
    return checkedToken(readFileSync(file, 'utf8').trim(), file);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const why = fileErrorText(error) ?? `${messageOf(error)}.`;
    throw new Refusal(fileErrorCode(error), `--token-file ${why}`, { cause: error });
  }
}

/** The `ctl up` that is running on a data directory. */
export function runningUp(dataDir: string): RunningUp | undefined {
  const [queueUrl, pid, metricsUrl, grpcUrl] = (fileIn(dataDir, 'queue.url') ?? '').split('\n');
  if (!queueUrl || !isAlive(Number(pid))) return undefined;
  return {
    queueUrl,
    pid: Number(pid),
    metricsUrl: metricsUrl || undefined,
    grpcUrl: grpcUrl || undefined,
  };
}

interface RunningUp {
  readonly queueUrl: string;
  readonly pid: number;
  readonly metricsUrl: string | undefined;
  readonly grpcUrl: string | undefined;
}

/** Where the metrics of a queue server are, if it is a local one or at its default address. */
export function locateMetrics(url: string, env: Environment): string | undefined {
  const running = runningUp(dataDirectory(undefined, env));
  if (running?.metricsUrl && isSameServer(running.queueUrl, url)) return running.metricsUrl;
  return isSameServer(url, defaultUrl) ? defaultMetricsUrl : undefined;
}

/** The gRPC address of a queue server that a local `ctl up` runs. */
export function locateGrpc(url: string, env: Environment): string | undefined {
  const running = runningUp(dataDirectory(undefined, env));
  return running && isSameServer(running.queueUrl, url) ? running.grpcUrl : undefined;
}

/** `localhost` is 127.0.0.1, where `ctl up` listens. */
export function isSameServer(one: string, other: string): boolean {
  const plain = (url: string) => url.replace(/^(https?:\/\/)localhost(?=[:/]|$)/, '$1127.0.0.1');
  return plain(one) === plain(other);
}

/** The token that `ctl up` leaves in the data directory. */
function ownersToken(dataDir: string): string | undefined {
  return fileIn(dataDir, 'queue.token')?.trim();
}

function fileIn(dataDir: string, name: string): string | undefined {
  try {
    return readFileSync(join(dataDir, name), 'utf8');
  } catch (error) {
    // A user who may not read it is not its owner.
    if (['ENOENT', 'ENOTDIR', 'EACCES'].includes(systemCode(error))) return undefined;
    throw error;
  }
}

/** Not shown if it is invalid, because it may still be a secret. */
function checkedToken(token: string, source: string): string {
  if (/^[A-Za-z0-9._~+/-]+=*$/.test(token)) return token;
  const fault = token === '' ? 'is empty' : 'contains something else';
  throw new UsageError(`${source} must contain one bearer token and ${fault}.`);
}
