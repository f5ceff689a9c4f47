import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** The live configuration, with the source of each value. */
export function getConfig({ settings }: DaemonContext): DaemonSchema<'ConfigView'> {
  return settings.view();
}
