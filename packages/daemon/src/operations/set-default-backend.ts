import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Makes one backend the only default. */
export async function setDefaultBackend(
  { backends }: DaemonContext,
  { id }: DaemonSchema<'SetDefaultRequest'>,
): Promise<DaemonSchema<'Registry'>> {
  return backends.document(await backends.setDefault(id));
}
