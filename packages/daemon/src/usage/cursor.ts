import { isAbsolute, join } from 'node:path';
import {
  failed,
  percentOf,
  recordOf,
  textOf,
  timeOfCount,
  type UsageAdapter,
  type UsageWindow,
} from './adapter.js';
import {
  noLogin,
  readLogin,
  tokenOf,
  callProvider,
  type LoginFile,
  type Logins,
  type CallTools,
} from './provider-call.js';

const windows = [
  { scope: 'included', label: 'Included usage', field: 'totalPercentUsed' },
  { scope: 'auto', label: 'Auto models', field: 'autoPercentUsed' },
  { scope: 'api', label: 'Named models (API)', field: 'apiPercentUsed' },
] as const;

/** Provider B: three windows of one billing cycle, read with the login of `cursor-agent`. */
export function cursorUsage(url: string, logins: Logins, tools: CallTools): UsageAdapter {
  return {
    windows: windows.map(({ scope, label }) => ({ scope, label })),
    async read(_row, limits) {
      const login = await readLogin(loginFiles(logins));
      const token = login.found ? tokenOf(recordOf(login.value)?.['accessToken']) : null;
      if (token === null) {
        if (!hasApiKey(login, logins)) return noLogin(login, 'cursor-agent login');
        const error = 'an API key cannot ask for usage; log in with `cursor-agent login`';
        return failed('unsupported', error, { wasRequested: false });
      }
      const headers = { 'connect-protocol-version': '1' };
      const request = { url, method: 'POST', token, headers, body: {} } as const;
      const answer = await callProvider(tools, request, limits);
      if (!answer.ok) return answer.failure;
      const found = windowsIn(answer.value);
      return found
        ? { ok: true, windows: found }
        : failed('error', 'the answer of the provider has no usage of the plan');
    },
  };
}

function loginFiles({ home, environment }: Logins): string[] {
  const config = environment['XDG_CONFIG_HOME'];
  return [
    join(home, '.config', 'cursor', 'auth.json'),
    ...(config && isAbsolute(config) ? [join(config, 'cursor', 'auth.json')] : []),
    join(home, '.cursor', 'auth.json'),
  ];
}

function hasApiKey(login: LoginFile, { environment }: Logins): boolean {
  if (textOf(environment['CURSOR_API_KEY']) !== null) return true;
  return login.found && textOf(recordOf(login.value)?.['apiKey']) !== null;
}

function windowsIn(answer: unknown): UsageWindow[] | undefined {
  const cycle = recordOf(answer);
  const plan = recordOf(cycle?.['planUsage']);
  if (!cycle || !plan || !windows.some(({ field }) => field in plan)) return undefined;
  const resetsAt = timeOfCount(cycle['billingCycleEnd'], 1);
  return windows.map(({ scope, label, field }) => ({
    scope,
    label,
    usedPercent: percentOf(plan[field]),
    resetsAt,
    modelFamilies: null,
    models: null,
  }));
}
