import type { DaemonApi } from '../daemon/api.js';
import { authOf } from '../daemon/auth.js';

/** A dashboard URL that logs one browser in; a plain one if auth is off. */
export async function dashboardLink(api: DaemonApi): Promise<{ url: string; isLogin: boolean }> {
  if ((await authOf(api)) === 'none') return { url: `${api.url}/`, isLogin: false };
  const { code } = await api.call('createLoginCode');
  return { url: `${api.url}/#login=${code}`, isLogin: true };
}
