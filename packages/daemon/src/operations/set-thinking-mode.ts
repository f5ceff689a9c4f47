import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Decides which backends the daemon's own thinking may use; a paid one is never among them. */
export function setThinkingMode(
  { backends }: DaemonContext,
  { mode }: DaemonSchema<'SetThinkingModeRequest'>,
): Promise<DaemonSchema<'Settings'>> {
  return backends.setThinkingMode(mode);
}
