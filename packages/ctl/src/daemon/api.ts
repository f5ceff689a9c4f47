import { Refusal, type RefusalExtra } from '@millrace/kit/errors';
import type { CtlCommand } from '../command.js';
import { exchange, harmless, isAbort, jsonOf, reasonOf } from '../http/exchange.js';
import type { Tools } from '../registry.js';
import { locate, type DaemonFlags, type DaemonPlace } from './locate.js';

export type { DaemonFlags } from './locate.js';

/** A daemon that can be asked. */
export interface DaemonApi {
  readonly url: string;
  /** The JSON of the answer. Whatever is not a success is thrown as a Refusal. */
  call(method: string, path: string, body?: object): Promise<unknown>;
}

export function withDaemon(command: CtlCommand): CtlCommand {
  return command
    .option('--url <url>', 'Talk to this daemon (default: $MILLRACE_URL, or the one running here)')
    .option('--data <dir>', 'Data directory of a daemon on this machine, to find it by');
}

type Here = Pick<Tools, 'terminal' | 'lifecycle'>;

export async function daemonApi(flags: DaemonFlags, here: Here): Promise<DaemonApi> {
  const place = await locate(flags, here.terminal.env);
  return {
    url: place.url,
    async call(method, path, body) {
      const { status, answer } = await ask(place, { method, path, body }, here);
      if (status >= 200 && status < 300) {
        if (answer !== undefined) return answer;
        throw stranger(place.url, status);
      }
      throw refusalOf(place, status, answer);
    },
  };
}

/** One answer of the daemon as it came, for those who pass it on. */
export async function daemonAnswer(
  flags: DaemonFlags,
  here: Here,
  method: string,
  path: string,
  body: object | undefined,
): Promise<{ status: number; body: unknown }> {
  const place = await locate(flags, here.terminal.env);
  const { status, answer } = await ask(place, { method, path, body }, here);
  return { status, body: answer };
}

interface Ask {
  readonly method: string;
  readonly path: string;
  readonly body: object | undefined;
}

async function ask(
  { url, token }: DaemonPlace,
  { method, path, body }: Ask,
  { lifecycle }: Here,
): Promise<{ status: number; answer: unknown }> {
  const signal = lifecycle.interrupted;
  const asked = { method, url: `${url}${path}`, token, body, signal };
  const { status, text } = await exchange(asked).catch((error: unknown) => {
    throw unreachable(url, error);
  });
  return { status, answer: jsonOf(text) };
}

/** What the daemon said no to, in its own words. */
function refusalOf({ url, token }: DaemonPlace, status: number, answer: unknown): Refusal {
  const { code, detail } = (answer ?? {}) as { code?: unknown; detail?: unknown };
  if (typeof code !== 'string' || typeof detail !== 'string') return stranger(url, status);
  if (code !== 'UNAUTHENTICATED') {
    return new Refusal(code, inWordsOfCtl(harmless(detail)), extraOf(answer));
  }
  const how = token === undefined ? 'asks for a token' : 'does not know this token';
  return new Refusal(
    code,
    `the daemon at ${url} ${how}. Set MILLRACE_TOKEN to the one that ` +
      '`ctl daemon token show` prints on its machine.',
  );
}

const listCommands: Readonly<Record<string, string>> = {
  backends: 'ctl backend list',
  sessions: 'ctl agent list',
  pipelines: 'ctl pipeline list',
};

/** The daemon names routes, for it does not know who asks; people here have commands. */
function inWordsOfCtl(detail: string): string {
  return detail.replace(
    /: GET \/api\/v1\/(backends|sessions|pipelines) lists them\.?$/,
    (_, route: string) => `; \`${listCommands[route]}\` shows them all.`,
  );
}

/** What a problem tells beside its words: where in the request it is, and figures to ask by. */
function extraOf(answer: unknown): RefusalExtra {
  const { errors, verdict } = answer as { errors?: RefusalExtra['errors']; verdict?: unknown };
  return {
    ...(Array.isArray(errors) ? { errors } : {}),
    ...(verdict === undefined ? {} : { members: { verdict } }),
  };
}

function stranger(url: string, status: number): Refusal {
  return new Refusal(
    'UNAVAILABLE',
    `${url} answers (${status}), but not as a Millrace daemon does. Name another with --url.`,
  );
}

function unreachable(url: string, error: unknown): Error {
  if (isAbort(error)) return error as Error;
  return new Refusal(
    'UNAVAILABLE',
    `no daemon answers at ${url} (${reasonOf(error)}). ` +
      'Start one with `ctl daemon serve` or `ctl up`, or name another with --url.',
    { cause: error },
  );
}
