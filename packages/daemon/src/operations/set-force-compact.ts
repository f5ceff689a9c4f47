import type { DaemonSchema } from '@millrace/contract/daemon';
import { isForced } from '../core/guard.js';
import type { Sessions } from '../sessions/port.js';

/** Overrides forced compaction for one agent, and returns the effective value. */
export async function setForceCompact(
  {
    sessions,
    forceCompact,
  }: { sessions: Pick<Sessions, 'setForceCompact'>; forceCompact: boolean },
  id: string,
  { state }: DaemonSchema<'SetForceCompactRequest'>,
): Promise<DaemonSchema<'ForceCompactState'>> {
  const { force_compact } = await sessions.setForceCompact(id, state);
  return { id, state: force_compact, effective: isForced(force_compact, forceCompact) };
}
