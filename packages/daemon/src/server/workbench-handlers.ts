import type { DaemonOperations } from '@millrace/contract/daemon';
import type { Handlers } from '@millrace/kit/http';
import type { Log } from '@millrace/kit/log';
import type { DaemonContext } from '../operations/context.js';
import { getBoard } from '../operations/get-board.js';
import { getSession } from '../operations/get-session.js';
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
  const { sessions, workbench } = context;
  const sessionOf = ({ id }: { id: string }) => getSession(context, id);
  return {
    getBoard: async () => ({ status: 200, body: await getBoard(context) }),
    getSessionDiff: async ({ params, query: { base } }) => ({
      status: 200,
      body: await workbench.diff(await sessionOf(params), base),
    }),
    commitSession: async ({ params, body, principal, log }) => {
      const session = await sessionOf(params);
      const result = await workbench.commit(session, body ?? {});
      await sessions.setMerged(session.id, false);
      return audited(log, principal, 'commit', result);
    },
    pushSession: async ({ params, body, principal, log }) =>
      audited(log, principal, 'push', await workbench.push(await sessionOf(params), body ?? {})),
    openPullRequest: async ({ params, body, principal, log }) =>
      audited(
        log,
        principal,
        'open-pr',
        await workbench.openPr(await sessionOf(params), body ?? {}),
      ),
    mergeSession: async ({ params, body, principal, log }) => {
      const session = await sessionOf(params);
      const result = await workbench.merge(session, body ?? {});
      await sessions.setMerged(session.id, true);
      return audited(log, principal, 'merge', result);
    },
    rebaseSession: async ({ params, body, principal, log }) =>
      audited(
        log,
        principal,
        'rebase',
        await workbench.rebase(await sessionOf(params), body ?? {}),
      ),
  };
}

/** Responds, and logs the caller and the branch change. */
function audited<Result extends object>(log: Log, { name }: Caller, action: string, body: Result) {
  log.info({ principal: name, action, ...body }, 'branch changed');
  return { status: 200 as const, body };
}
