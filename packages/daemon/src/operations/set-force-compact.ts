import type { DaemonSchema } from '@millrace/contract/daemon';
import { isForced } from '../core/guard.js';
import type { DaemonContext } from './context.js';
import { getSession } from './get-session.js';

/** Overrides forced compaction for one agent, and returns the effective value. */
export async function setForceCompact(
  context: Pick<DaemonContext, 'sessions' | 'forceCompact'>,
  words: string,
  { state }: DaemonSchema<'SetForceCompactRequest'>,
): Promise<DaemonSchema<'ForceCompactState'>> {
  const { sessions, forceCompact } = context;
  const { id } = await getSession(context, words);
  const { force_compact } = await sessions.setForceCompact(id, state);
  return { id, state: force_compact, effective: isForced(force_compact, forceCompact()) };
}
