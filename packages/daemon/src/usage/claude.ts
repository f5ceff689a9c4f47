import { join } from 'node:path';
import {
  failed,
  percentOf,
  recordOf,
  timeOfText,
  type UsageAdapter,
  type UsageWindow,
} from './adapter.js';
import {
  noLogin,
  readLogin,
  tokenOf,
  callProvider,
  type Logins,
  type CallTools,
} from './provider-call.js';

const windows = [{ scope: 'five_hour', label: '5-hour window' }] as const;

/** Windows that only some plans have. */
const optionalWindows = [
  { scope: 'seven_day', label: '7-day window', families: null },
  { scope: 'seven_day_opus', label: '7-day window of Opus', families: ['opus'] },
] as const;

/** Provider D: its windows, read with the login of the command line `claude`. */
export function claudeUsage(url: string, logins: Logins, tools: CallTools): UsageAdapter {
  return {
    windows,
    async read(_row, limits) {
      const login = await readLogin(loginFiles(logins));
      const token = login.found ? tokenIn(login.value) : null;
      if (token === null) return noLogin(login, 'claude');
      const headers = { 'anthropic-beta': 'oauth-2025-04-20' };
      const answer = await callProvider(tools, { url, method: 'GET', token, headers }, limits);
      if (!answer.ok) return answer.failure;
      const window = windowIn(answer.value);
      return window
        ? { ok: true, windows: [window, ...optionalIn(answer.value)] }
        : failed('error', 'the answer of the provider has no five-hour window');
    },
  };
}

function loginFiles({ home, environment }: Logins): string[] {
  const moved = environment['CLAUDE_CONFIG_DIR'];
  const folders = [...(moved ? [moved] : []), join(home, '.claude')];
  return folders.map((folder) => join(folder, '.credentials.json'));
}

function tokenIn(login: unknown): string | null {
  return tokenOf(recordOf(recordOf(login)?.['claudeAiOauth'])?.['accessToken']);
}

function optionalIn(answer: unknown): UsageWindow[] {
  return optionalWindows.flatMap(({ scope, label, families }) => {
    const found = recordOf(recordOf(answer)?.[scope]);
    if (found === null || !('utilization' in found)) return [];
    const usedPercent = percentOf(found['utilization']);
    const resetsAt = timeOfText(found['resets_at']);
    const modelFamilies = families && [...families];
    return [{ scope, label, usedPercent, resetsAt, modelFamilies, models: null }];
  });
}

function windowIn(answer: unknown): UsageWindow | undefined {
  const given = recordOf(answer)?.['five_hour'];
  const found = recordOf(given);
  // null means that the provider has no data for a window.
  if (found === null && given !== null) return undefined;
  if (found !== null && !('utilization' in found)) return undefined;
  return {
    ...windows[0],
    usedPercent: percentOf(found?.['utilization']),
    resetsAt: timeOfText(found?.['resets_at']),
    modelFamilies: null,
    models: null,
  };
}
