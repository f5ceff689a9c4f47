import type { DaemonSchema } from '@millrace/contract/daemon';
import { boardColumns, columnOf } from '../core/board.js';
import type { DaemonContext } from './context.js';

/** The sessions by what they need next. */
export async function getBoard({
  sessions,
  branches,
}: Pick<DaemonContext, 'sessions' | 'branches'>): Promise<DaemonSchema<'Board'>> {
  const all = await sessions.list();
  // Only a merge moves a session from here, so only these are compared with their base.
  const toReview = all.filter((each) => columnOf(each, false) === 'review');
  const merged = await branches.merged(toReview);
  const placed = all.map((session) => ({
    session,
    column: columnOf(session, merged.has(session.id)),
  }));
  return {
    columns: boardColumns.map((name) => ({
      name,
      sessions: placed.filter(({ column }) => column === name).map(({ session }) => session),
    })),
  };
}
