import { ApiError, createDaemonClient, type DaemonClient } from '@millrace/client';
import { jsonIn, Refusal, type RefusalExtra } from '@millrace/kit/errors';
import type { CtlCommand } from '../base/command.js';
import { exchange, fetchOver, harmless, isAbort, reasonOf } from '../base/exchange.js';
import type { Tools } from '../base/tools.js';
import { locate, type DaemonFlags, type DaemonPlace } from './locate.js';

export type { DaemonFlags } from './locate.js';

/** Client of the daemon's API. Throws a Refusal for every error response. */
export type DaemonApi = Pick<DaemonClient, 'url' | 'call'>;

export function withDaemon(command: CtlCommand): CtlCommand {
  return command
    .option('--url <url>', 'Talk to this daemon (default: $MILLRACE_URL, or the one running here)')
    .option(
      '--data <dir>',
      'Data directory of a daemon on this machine, to find its address and token',
    );
}

type Here = Pick<Tools, 'terminal' | 'lifecycle'>;

export async function daemonApi(flags: DaemonFlags, here: Here): Promise<DaemonApi> {
  const place = await locate(flags, here.terminal.env);
  const fetch = fetchOver({ signal: here.lifecycle.interrupted });
  const client = createDaemonClient({ ...place, fetch });
  const call: DaemonClient['call'] = async (...request) => {
    try {
      return await client.call(...request);
    } catch (error) {
      throw error instanceof ApiError ? refusalOf(place, error) : unreachable(place.url, error);
    }
  };
  return { url: place.url, call };
}

/** A response of the daemon unchanged, for MCP over stdio, which relays it. */
export async function daemonAnswer(
  flags: DaemonFlags,
  here: Here,
  method: string,
  path: string,
  body: object | undefined,
): Promise<{ status: number; body: unknown }> {
  const { url, token } = await locate(flags, here.terminal.env);
  const { status, text } = await exchange({
    method,
    url: `${url}${path}`,
    token,
    body: body && JSON.stringify(body),
    signal: here.lifecycle.interrupted,
  }).catch((error: unknown) => {
    throw unreachable(url, error);
  });
  return { status, body: jsonIn(text) };
}

/** The daemon's error, with the ctl command that helps. */
function refusalOf({ url, token }: DaemonPlace, error: ApiError): Refusal {
  const { code, detail, status, body } = error;
  if (code === '') return stranger(url, status);
  if (code !== 'UNAUTHENTICATED') {
    const list = listCommands[code];
    const hint = list === undefined ? '' : ` List them with \`${list}\`.`;
    const said = harmless(detail);
    const text = hint === '' || /[.?!]$/.test(said) ? said : `${said}.`;
    return new Refusal(code, `${text}${hint}`, extraOf(body));
  }
  const how = token === undefined ? 'requires a token' : 'does not accept this token';
  return new Refusal(
    code,
    `the daemon at ${url} ${how}. Set MILLRACE_TOKEN to the token that \`ctl daemon token ` +
      'show` prints on its machine.',
  );
}

const listCommands: Readonly<Record<string, string>> = {
  BACKEND_NOT_FOUND: 'ctl backend list',
  SESSION_NOT_FOUND: 'ctl agent list',
  PIPELINE_NOT_FOUND: 'ctl pipeline list',
  PLAN_NOT_FOUND: 'ctl agent plan-show',
};

/** Extra members of a problem: the place in the request, and figures. */
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
    `the server at ${url} (${status}) is not a Millrace daemon. Name another with --url.`,
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

/** Whether the daemon requires a token. */
export async function authOf(api: DaemonApi): Promise<'token' | 'none'> {
  const { entries } = await api.call('getConfig');
  return entries.find(({ key }) => key === 'auth')?.value === 'none' ? 'none' : 'token';
}

/** A dashboard URL that logs one browser in; a plain one if auth is off. */
export async function dashboardLink(api: DaemonApi): Promise<{ url: string; isLogin: boolean }> {
  if ((await authOf(api)) === 'none') return { url: `${api.url}/`, isLogin: false };
  const { code } = await api.call('createLoginCode');
  return { url: `${api.url}/#login=${code}`, isLogin: true };
}

/** The refusal of a response that has not the form of this version. */
export function otherVersion({ url }: DaemonApi, what: string): Refusal {
  const detail = `${url} returned no ${what}. It may be another version of Millrace.`;
  return new Refusal('UNAVAILABLE', detail);
}
