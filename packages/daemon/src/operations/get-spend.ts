import type { DaemonSchema } from '@millrace/contract/daemon';
import { fail } from '../core/refusals.js';
import type { DaemonContext } from './context.js';

type Rollup = DaemonSchema<'SpendRollup'>;

/** Spend of the agents, from their transcripts. */
export async function getSpend({ spend, sessions }: DaemonContext): Promise<Rollup> {
  if (!spend) {
    throw fail(
      'SAVINGS_DISABLED',
      'The setting savings is off. Set savings to true and restart the daemon.',
    );
  }
  const rollup = await spend.read();
  return { ...rollup, by_agent: byOurSessions(rollup.by_agent, await sessions.list()) };
}

/**
 * Transcripts identify an agent by its backend's session id. Agents spawned here are shown with
 * the daemon's own session id.
 */
function byOurSessions(
  rows: Rollup['by_agent'],
  sessions: readonly DaemonSchema<'Session'>[],
): Rollup['by_agent'] {
  const ids = new Map(
    sessions.flatMap(({ id, backend_session_id: theirs }) => (theirs ? [[theirs, id]] : [])),
  );
  return rows.map((row) => {
    const id = ids.get(row.key);
    return id === undefined ? row : { ...row, key: id };
  });
}
