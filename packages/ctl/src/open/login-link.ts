import type { DaemonApi } from '../daemon/api.js';
import { authOf } from '../daemon/auth.js';

/** An address of the dashboard that logs one browser in; a plain one where nobody needs to. */
export async function dashboardLink(api: DaemonApi): Promise<{ url: string; isLogin: boolean }> {
  if ((await authOf(api)) === 'none') return { url: `${api.url}/`, isLogin: false };
  const { code } = await api.call('createLoginCode');
  return { url: `${api.url}/#login=${code}`, isLogin: true };
}
