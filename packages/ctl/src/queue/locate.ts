import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf, Refusal, systemCode, UsageError } from '@millrace/kit/errors';
import { dataDirectory } from '../data-directory.js';
import { fileTrouble } from '../file-trouble.js';
import { isLocalUrl } from '../local-url.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** What every command that talks to a queue server takes. */
export interface QueueFlags {
  url?: string;
  tokenFile?: string;
}

export interface QueuePlace {
  /** Without a slash at the end. */
  readonly url: string;
  readonly token: string | undefined;
}

/** Where a queue server listens, and serves its metrics, unless told otherwise. */
export const usualUrl = 'http://127.0.0.1:8081';
export const usualMetricsUrl = 'http://127.0.0.1:9464';

/**
 * Where the server is: `--url`, else MILLRACE_QUEUE_URL, else where that of a running `ctl up`
 * listens, else where one usually does. The token
 * is that of `--token-file`, else MILLRACE_QUEUE_TOKEN, else the one that `ctl up` made for the
 * owner of this machine's queue, which is not sent to another machine.
 */
export function locateQueue(flags: QueueFlags, env: Environment): QueuePlace {
  const url =
    flags.url === undefined
      ? checkedUrl(env['MILLRACE_QUEUE_URL'] || runningUrl(env) || usualUrl, '$MILLRACE_QUEUE_URL')
      : checkedUrl(flags.url, '--url');
  if (flags.tokenFile !== undefined) return { url, token: tokenIn(flags.tokenFile) };
  const given = env['MILLRACE_QUEUE_TOKEN'];
  if (given) return { url, token: checkedToken(given.trim(), '$MILLRACE_QUEUE_TOKEN') };
  return { url, token: isLocalUrl(url) ? ownersToken(env) : undefined };
}

export function checkedUrl(text: string, source: string, example = usualUrl): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    throw new UsageError(`${source} must be a URL such as ${example}, not "${text}".`);
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}

function tokenIn(file: string): string {
  try {
    return checkedToken(readFileSync(file, 'utf8').trim(), file);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const why = fileTrouble(error) ?? `${messageOf(error)}.`;
    throw new Refusal(systemCode(error) || 'UNREADABLE', `--token-file ${why}`, { cause: error });
  }
}

/** `ctl up` leaves it in the data directory, with the process that would take it away again. */
function runningUrl(env: Environment): string | undefined {
  return runningUp(dataDirectory(undefined, env))?.queueUrl;
}

/** The `ctl up` that runs on a data directory. */
export function runningUp(dataDir: string): { queueUrl: string; pid: number } | undefined {
  const [queueUrl, pid] = (fileIn(dataDir, 'queue.url') ?? '').split('\n');
  return queueUrl && isAlive(Number(pid)) ? { queueUrl, pid: Number(pid) } : undefined;
}

function isAlive(pid: number): boolean {
  // Anything but a number from 1 on stands for a group of processes, such as our own.
  if (!Number.isInteger(pid) || pid < 1) return false;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // Somebody else's process is alive too.
    return systemCode(error) === 'EPERM';
  }
}

/** `ctl up` leaves it in the data directory. */
function ownersToken(env: Environment): string | undefined {
  return fileIn(dataDirectory(undefined, env), 'queue.token')?.trim();
}

function fileIn(dataDir: string, name: string): string | undefined {
  try {
    return readFileSync(join(dataDir, name), 'utf8');
  } catch (error) {
    // Whoever may not read it is not its owner.
    if (['ENOENT', 'ENOTDIR', 'EACCES'].includes(systemCode(error))) return undefined;
    throw error;
  }
}

/** Not shown when it is wrong: it may be a secret all the same. */
function checkedToken(token: string, source: string): string {
  if (/^[A-Za-z0-9._~+/-]+=*$/.test(token)) return token;
  const fault = token === '' ? 'is empty' : 'holds something else';
  throw new UsageError(`${source} must hold one bearer token and ${fault}.`);
}
