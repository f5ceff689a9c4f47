import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** The live configuration, with where each value came from. */
export function getConfig({ config }: DaemonContext): DaemonSchema<'ConfigView'> {
  return config();
}
