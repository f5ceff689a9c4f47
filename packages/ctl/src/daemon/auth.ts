import type { DaemonApi } from './api.js';

/** Whether the daemon requires a token. */
export async function authOf(api: DaemonApi): Promise<'token' | 'none'> {
  const { entries } = await api.call('getConfig');
  return entries.find(({ key }) => key === 'auth')?.value === 'none' ? 'none' : 'token';
}
