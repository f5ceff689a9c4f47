import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Sets preferences of one backend; absent ones stay. */
export async function updateBackend(
  { backends }: DaemonContext,
  id: string,
  { tier, enabled }: DaemonSchema<'UpdateBackendRequest'>,
): Promise<DaemonSchema<'BackendRow'>> {
  return backends.row(await backends.update(id, { tier, enabled }));
}
