import { join } from 'node:path';
import {
  failed,
  recordOf,
  textOf,
  type CallLimits,
  type Reading,
  type UsageAdapter,
} from './adapter.js';
import { quotaWindows, quotaWindowNames } from './gemini-quota.js';
import {
  noLogin,
  readLogin,
  tokenOf,
  callProvider,
  type Logins,
  type CallTools,
  type ProviderAnswer,
} from './provider-call.js';

/**
 * Provider C: two windows, one for the models of its own family and one for all others, read with
 * the login of `gemini` or of `agy`.
 */
export function geminiUsage(
  command: 'gemini' | 'agy',
  url: string,
  logins: Logins,
  tools: CallTools,
): UsageAdapter {
  const request = async (token: string, at: string, limits: CallLimits): Promise<ProviderAnswer> =>
    callProvider(tools, { url: at, method: 'POST', token, body: bodyOf(logins) }, limits);
  return {
    windows: quotaWindowNames,
    async read(_row, limits) {
      const login = await readLogin(loginFiles(command, logins));
      const token = login.found ? tokenIn(login.value) : null;
      if (token === null) return noLogin(login, command);
      const first = await request(token, url, limits);
      const seen = readingOf(first);
      const other = summaryUrl(url);
      if (seen.ok || other === undefined || !mayKnowElsewhere(first)) return seen;
      const second = readingOf(await request(token, other, limits));
      // If both fail, report the error of the configured one.
      return second.ok || second.status === 'timeout' ? second : seen;
    },
  };
}

function loginFiles(command: 'gemini' | 'agy', { home }: Logins): string[] {
  const gemini = join(home, '.gemini', 'oauth_creds.json');
  const agy = join(home, '.gemini', 'antigravity-cli', 'antigravity-oauth-token');
  return command === 'agy' ? [agy, gemini] : [gemini, agy];
}

/** `{access_token}`, the same within `token`, or the bare token. */
function tokenIn(login: unknown): string | null {
  const outer = recordOf(login);
  if (outer === null) return /^[\w.~+/-]+=*$/.test(String(login)) ? tokenOf(login) : null;
  const inner = recordOf(outer['token']);
  return tokenOf(outer['access_token']) ?? tokenOf(inner?.['access_token'] ?? outer['token']);
}

function bodyOf({ environment }: Logins): { project?: string } {
  const project =
    textOf(environment['GOOGLE_CLOUD_PROJECT']) ?? textOf(environment['GOOGLE_CLOUD_PROJECT_ID']);
  return project === null ? {} : { project };
}

/** Some accounts get their quota by groups only, some by models only. */
function summaryUrl(url: string): string | undefined {
  return url.endsWith(':retrieveUserQuota') ? `${url}Summary` : undefined;
}

/** An account of the other kind is refused, not unknown, or answered without any quota. */
function mayKnowElsewhere(answer: ProviderAnswer): boolean {
  if (answer.ok) return true;
  return answer.httpStatus !== null && [400, 403, 404].includes(answer.httpStatus);
}

function readingOf(answer: ProviderAnswer): Reading {
  if (!answer.ok) return answer.failure;
  const windows = quotaWindows(answer.value);
  return windows
    ? { ok: true, windows }
    : failed('error', 'the answer of the provider has no quota that can be read');
}
