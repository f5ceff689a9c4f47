import { join } from 'node:path';
import { percentOf, recordOf, timeOfText, windowOf, type UsageWindow } from './adapter.js';
import { providerUsage, tokenOf, type Logins, type CallTools } from './provider-call.js';

const windows = [{ scope: 'five_hour', label: '5-hour window' }] as const;

/** Windows that only some plans have. */
const optionalWindows = [
  { scope: 'seven_day', label: '7-day window', families: null },
  { scope: 'seven_day_opus', label: '7-day window of Opus', families: ['opus'] },
] as const;

/** Provider D: its windows, read with the login of the command line `claude`. */
export function claudeUsage(url: string, { home, environment }: Logins, tools: CallTools) {
  const moved = environment['CLAUDE_CONFIG_DIR'];
  const folders = [...(moved ? [moved] : []), join(home, '.claude')];
  return providerUsage(
    {
      windows,
      request: { url, method: 'GET', headers: { 'anthropic-beta': 'oauth-2025-04-20' } },
      loginFiles: folders.map((folder) => join(folder, '.credentials.json')),
      command: 'claude',
      tokenIn: (login) => tokenOf(recordOf(recordOf(login)?.['claudeAiOauth'])?.['accessToken']),
      windowsIn: (answer) => {
        const window = windowIn(answer);
        return window && [window, ...optionalIn(answer)];
      },
      missing: 'the answer of the provider has no five-hour window',
    },
    tools,
  );
}

function optionalIn(answer: unknown): UsageWindow[] {
  return optionalWindows.flatMap(({ families, ...names }) => {
    const found = recordOf(recordOf(answer)?.[names.scope]);
    if (found === null || !('utilization' in found)) return [];
    const used = percentOf(found['utilization']);
    const window = windowOf(names, used, timeOfText(found['resets_at']));
    return [{ ...window, modelFamilies: families && [...families] }];
  });
}

function windowIn(answer: unknown): UsageWindow | undefined {
  const given = recordOf(answer)?.['five_hour'];
  const found = recordOf(given);
  // null means that the provider has no data for a window.
  if (found === null && given !== null) return undefined;
  if (found !== null && !('utilization' in found)) return undefined;
  return windowOf(windows[0], percentOf(found?.['utilization']), timeOfText(found?.['resets_at']));
}
