import { readFile } from 'node:fs/promises';
import type {
  FailureType,
  Outbound,
  OutboundRequest,
  OutboundResponse,
} from '@millrace/kit/outbound';
import { systemCode } from '@millrace/kit/errors';
import {
  failed,
  textOf,
  type CallLimits,
  type Failed,
  type UsageAdapter,
  type UsageWindow,
} from './adapter.js';

export interface ProviderRequest {
  readonly url: string;
  readonly method: 'GET' | 'POST';
  readonly token: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

export type ProviderAnswer =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly failure: Failed; readonly httpStatus: number | null };

export interface CallTools {
  readonly outbound: Outbound;
  /** For a Retry-After that is a date. */
  readonly now: () => number;
}

const maxAnswerBytes = 1_048_576;

/** Calls a provider over HTTP and parses its JSON response. Redirects are not followed. */
export async function callProvider(
  { outbound, now }: CallTools,
  request: ProviderRequest,
  { signal, timeoutMs }: CallLimits,
): Promise<ProviderAnswer> {
  const outboundRequest: OutboundRequest = {
    url: request.url,
    method: request.method,
    headers: {
      ...request.headers,
      authorization: `Bearer ${request.token}`,
      accept: 'application/json',
      'accept-encoding': 'identity',
      'user-agent': 'millrace',
      ...(request.body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(request.body === undefined ? {} : { body: JSON.stringify(request.body) }),
    timeoutMs,
    connectTimeoutMs: timeoutMs,
    maxResponseBytes: maxAnswerBytes,
    signal,
  };
  const outcome = await outbound.request(outboundRequest);
  if (!outcome.ok) return { ok: false, failure: unreached(outcome.errorType), httpStatus: null };
  if (outcome.status < 200 || outcome.status > 299) {
    const failure = refusal(outcome, retryAfter(outcome, now()));
    return { ok: false, failure, httpStatus: outcome.status };
  }
  if (outcome.truncated) return nonsense(outcome.status, 'the answer of the provider is too long');
  try {
    return { ok: true, value: JSON.parse(Buffer.from(outcome.body).toString('utf8')) as unknown };
  } catch {
    // The parser's message repeats what it read.
    return nonsense(outcome.status, 'the answer of the provider is not JSON');
  }
}

const reasons: Readonly<Record<FailureType, string>> = {
  TIMEOUT: 'it took too long',
  CONNECTION_REFUSED: 'the connection was refused',
  CONNECTION_RESET: 'the connection broke',
  DNS_FAILURE: 'its name does not resolve',
  TLS_FAILURE: 'its certificate is not trusted',
  NETWORK_ERROR: 'the network failed',
  TARGET_BLOCKED: 'its URL in the settings cannot be called',
  ABORTED: 'it took too long',
};

// Only the kind of failure is reported, because the message contains addresses.
function unreached(type: FailureType): Failed {
  if (type === 'TIMEOUT' || type === 'ABORTED') {
    return failed('timeout', 'the provider did not answer in time');
  }
  return failed('unavailable', `the provider cannot be reached: ${reasons[type]}`);
}

function refusal({ status }: OutboundResponse, retryAfterMs: number | undefined): Failed {
  if (status === 401 || status === 403) {
    const error = `the provider does not accept the login (${status}); log in again`;
    return failed('unauthenticated', error, { retryAfterMs });
  }
  const meaning = status === 429 ? ': too many requests' : '';
  return failed('unavailable', `the provider answered ${status}${meaning}`, { retryAfterMs });
}

function nonsense(httpStatus: number, error: string): ProviderAnswer {
  return { ok: false, failure: failed('error', error), httpStatus };
}

/** Parses Retry-After: seconds or a date. */
function retryAfter({ headers }: OutboundResponse, now: number): number | undefined {
  const given = headers['retry-after'];
  const text = (Array.isArray(given) ? given[0] : given)?.trim() ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const date = /[A-Za-z]/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

/** A provider that is called with the login of its command line. */
export interface Provider extends Pick<UsageAdapter, 'windows'> {
  readonly request: Omit<ProviderRequest, 'token'>;
  readonly loginFiles: readonly string[];
  /** Logs in. */
  readonly command: string;
  tokenIn(login: unknown): string | null;
  /** A reason other than a missing login. */
  withoutToken?(login: LoginFile): Failed | undefined;
  /** Undefined when the answer has none; `missing` says so. */
  windowsIn(answer: unknown): UsageWindow[] | undefined;
  readonly missing: string;
}

export function providerUsage(provider: Provider, tools: CallTools): UsageAdapter {
  const { windows, request, loginFiles, command, missing } = provider;
  return {
    windows,
    async read(_row, limits) {
      const login = await readLogin(loginFiles);
      const token = login.found ? provider.tokenIn(login.value) : null;
      if (token === null) return provider.withoutToken?.(login) ?? noLogin(login, command);
      const answer = await callProvider(tools, { ...request, token }, limits);
      if (!answer.ok) return answer.failure;
      const found = provider.windowsIn(answer.value);
      return found ? { ok: true, windows: found } : failed('error', missing);
    },
  };
}

/** Directories of login files. */
export interface Logins {
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly codexEnvironment?: Readonly<Record<string, string>> | undefined;
}

export type LoginFile =
  | { readonly found: true; readonly value: unknown }
  | { readonly found: false; readonly isUnreadable: boolean };

/**
 * The first existing file, as JSON. Files of other programs are never written: renewing an expired
 * login is up to them.
 */
export async function readLogin(files: readonly string[]): Promise<LoginFile> {
  let isUnreadable = false;
  for (const file of files) {
    try {
      const text = await readFile(file, 'utf8');
      return { found: true, value: parsed(text) };
    } catch (error) {
      if (!['ENOENT', 'ENOTDIR'].includes(systemCode(error))) isUnreadable = true;
    }
  }
  return { found: false, isUnreadable };
}

/** Some logins are the bare token. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text.trim();
  }
}

/** A token that can go into a header, or null: a file may hold anything. */
export function tokenOf(value: unknown): string | null {
  const token = textOf(value);
  return token !== null && /^[\u0021-\u007E]{1,8192}$/.test(token) ? token : null;
}

/** The failure without a token: says how to log in, but not which files were read. */
export function noLogin(login: LoginFile, command: string): Failed {
  const why = login.found
    ? 'the login holds no token that can be used'
    : login.isUnreadable
      ? 'the login cannot be read'
      : 'there is no login';
  return failed('unauthenticated', `${why}; log in with \`${command}\``, { wasRequested: false });
}
