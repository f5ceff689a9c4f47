import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Sets what people choose about one backend; what is absent stays as it is. */
export async function updateBackend(
  { backends }: DaemonContext,
  id: string,
  { tier, enabled }: DaemonSchema<'UpdateBackendRequest'>,
): Promise<DaemonSchema<'BackendRow'>> {
  return backends.row(await backends.update(id, { tier, enabled }));
}
