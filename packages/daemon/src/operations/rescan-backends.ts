import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/**
 * Detects backends again. Callers during a running scan share the next one. With `acp`, programs
 * are also asked whether they speak the Agent Client Protocol.
 */
export async function rescanBackends(
  { backends }: Pick<DaemonContext, 'backends'>,
  { acp }: { acp: boolean },
): Promise<DaemonSchema<'Registry'>> {
  const scanned = await backends.rescan();
  return backends.document(acp ? await backends.findAcp() : scanned);
}
