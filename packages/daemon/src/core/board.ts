import type { DaemonSchema } from '@millrace/contract/daemon';

type Session = DaemonSchema<'Session'>;
export type BoardColumn = DaemonSchema<'BoardColumnName'>;

export const boardColumns: readonly BoardColumn[] = [
  'queued',
  'working',
  'needs_you',
  'review',
  'done',
];

/**
 * The column of a session. Work at rest is to be reviewed until its branch is merged: by the daemon,
 * into the local base or into the base of the remote. A session without a worktree leaves nothing
 * to merge, so it is done when its process has ended.
 */
export function columnOf(
  session: Pick<Session, 'status' | 'worktree' | 'turn_error' | 'merged_at'>,
  isBranchMerged: boolean,
): BoardColumn {
  const isMerged = isBranchMerged || Boolean(session.merged_at);
  switch (session.status) {
    case 'spawning':
    case 'rate_limited':
      return 'queued';
    case 'working':
      return 'working';
    case 'waiting_for_input':
    case 'errored':
    case 'orphaned':
      return 'needs_you';
    case 'idle':
      if (session.turn_error) return 'needs_you';
      return isMerged ? 'done' : 'review';
    case 'done':
      return session.worktree === null || isMerged ? 'done' : 'review';
  }
}
