import { isAbsolute, join } from 'node:path';
import { failed, percentOf, recordOf, textOf, timeOfCount, windowOf } from './adapter.js';
import { providerUsage, tokenOf, type Logins, type CallTools } from './provider-call.js';

const windows = [
  { scope: 'included', label: 'Included usage', field: 'totalPercentUsed' },
  { scope: 'auto', label: 'Auto models', field: 'autoPercentUsed' },
  { scope: 'api', label: 'Named models (API)', field: 'apiPercentUsed' },
] as const;

const headers = { 'connect-protocol-version': '1' };

/** Provider B: three windows of one billing cycle, read with the login of `cursor-agent`. */
export function cursorUsage(url: string, { home, environment }: Logins, tools: CallTools) {
  const config = environment['XDG_CONFIG_HOME'];
  return providerUsage(
    {
      windows,
      request: { url, method: 'POST', headers, body: {} },
      loginFiles: [
        join(home, '.config', 'cursor', 'auth.json'),
        ...(config && isAbsolute(config) ? [join(config, 'cursor', 'auth.json')] : []),
        join(home, '.cursor', 'auth.json'),
      ],
      command: 'cursor-agent login',
      tokenIn: (login) => tokenOf(recordOf(login)?.['accessToken']),
      withoutToken: (login) => {
        const own = login.found ? textOf(recordOf(login.value)?.['apiKey']) : null;
        if (own === null && textOf(environment['CURSOR_API_KEY']) === null) return undefined;
        const error = 'an API key cannot ask for usage; log in with `cursor-agent login`';
        return failed('unsupported', error, { wasRequested: false });
      },
      windowsIn: (answer) => {
        const cycle = recordOf(answer);
        const plan = recordOf(cycle?.['planUsage']);
        if (!cycle || !plan || !windows.some(({ field }) => field in plan)) return undefined;
        const resetsAt = timeOfCount(cycle['billingCycleEnd'], 1);
        return windows.map((each) => windowOf(each, percentOf(plan[each.field]), resetsAt));
      },
      missing: 'the answer of the provider has no usage of the plan',
    },
    tools,
  );
}
