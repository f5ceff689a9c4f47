import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Detects backends again. Callers during a running scan share the next one. */
export async function rescanBackends({
  backends,
}: DaemonContext): Promise<DaemonSchema<'Registry'>> {
  return backends.document(await backends.rescan());
}
