import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonApi } from '../daemon/api.js';

/** An address of the dashboard that logs one browser in; a plain one where nobody needs to. */
export async function dashboardLink(api: DaemonApi): Promise<{ url: string; isLogin: boolean }> {
  if ((await authOf(api)) === 'none') return { url: `${api.url}/`, isLogin: false };
  const { code } = (await api.call('POST', '/api/v1/login-codes')) as DaemonSchema<'LoginCode'>;
  return { url: `${api.url}/#login=${code}`, isLogin: true };
}

/** Whether the daemon asks callers for a token. */
export async function authOf(api: DaemonApi): Promise<'token' | 'none'> {
  const { entries } = (await api.call('GET', '/api/v1/config')) as DaemonSchema<'ConfigView'>;
  return entries.find(({ key }) => key === 'auth')?.value === 'none' ? 'none' : 'token';
}
