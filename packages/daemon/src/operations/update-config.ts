import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Changes settings in the config file and applies them; `by` is named in the log. */
export function updateConfig(
  { settings }: Pick<DaemonContext, 'settings'>,
  request: DaemonSchema<'UpdateConfigRequest'>,
  by: string,
): Promise<DaemonSchema<'ConfigView'>> {
  return settings.update(request, by);
}
