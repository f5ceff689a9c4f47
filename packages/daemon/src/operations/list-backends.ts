import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Every known backend, installed or not, and the settings. */
export async function listBackends({ backends }: DaemonContext): Promise<DaemonSchema<'Registry'>> {
  return backends.document(await backends.read());
}
