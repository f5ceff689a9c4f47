import type { DaemonOperations } from '@millrace/contract/daemon';
import type { Handlers } from '@millrace/kit/http';
import type { Log } from '@millrace/kit/log';
import { commitSession } from '../operations/commit-session.js';
import type { DaemonContext } from '../operations/context.js';
import { getBoard } from '../operations/get-board.js';
import { getSessionDiff } from '../operations/get-session-diff.js';
import { mergeSession } from '../operations/merge-session.js';
import { openPullRequest } from '../operations/open-pull-request.js';
import { pushSession } from '../operations/push-session.js';
import { rebaseSession } from '../operations/rebase-session.js';
import type { Caller } from './access/authenticator.js';

type WorkbenchOperations = Pick<
  DaemonOperations,
  | 'getBoard'
  | 'getSessionDiff'
  | 'commitSession'
  | 'pushSession'
  | 'openPullRequest'
  | 'mergeSession'
  | 'rebaseSession'
>;

export function workbenchHandlers(
  context: Pick<DaemonContext, 'sessions' | 'branches' | 'workbench'>,
): Handlers<WorkbenchOperations, Caller> {
  return {
    getBoard: async () => ({ status: 200, body: await getBoard(context) }),
    getSessionDiff: async ({ params, query: { base } }) => ({
      status: 200,
      body: await getSessionDiff(context, params.id, { base }),
    }),
    commitSession: async ({ params, body, principal, log }) =>
      audited(log, principal, 'commit', await commitSession(context, params.id, body ?? {})),
    pushSession: async ({ params, body, principal, log }) =>
      audited(log, principal, 'push', await pushSession(context, params.id, body ?? {})),
    openPullRequest: async ({ params, body, principal, log }) =>
      audited(log, principal, 'open-pr', await openPullRequest(context, params.id, body ?? {})),
    mergeSession: async ({ params, body, principal, log }) =>
      audited(log, principal, 'merge', await mergeSession(context, params.id, body ?? {})),
    rebaseSession: async ({ params, body, principal, log }) =>
      audited(log, principal, 'rebase', await rebaseSession(context, params.id, body ?? {})),
  };
}

/** Responds, and logs the caller and the branch change. */
function audited<Result extends object>(log: Log, { name }: Caller, action: string, body: Result) {
  log.info({ principal: name, action, ...body }, 'branch changed');
  return { status: 200 as const, body };
}
