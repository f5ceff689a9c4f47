import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Sets which backends the daemon may use for its own prompts; never paid ones. */
export function setThinkingMode(
  { backends }: DaemonContext,
  { mode }: DaemonSchema<'SetThinkingModeRequest'>,
): Promise<DaemonSchema<'Settings'>> {
  return backends.setThinkingMode(mode);
}
