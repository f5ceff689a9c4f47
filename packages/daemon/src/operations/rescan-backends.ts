import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Looks at the machine again. Callers who come while somebody looks share the next look. */
export async function rescanBackends({
  backends,
}: DaemonContext): Promise<DaemonSchema<'Registry'>> {
  return backends.document(await backends.rescan());
}
