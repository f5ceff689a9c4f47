import type { DaemonOperations } from '@millrace/contract/daemon';
import type { Handlers } from '@millrace/kit/http';
import type { DaemonContext } from '../operations/context.js';
import { deleteSession } from '../operations/delete-session.js';
import { getSessionOutput } from '../operations/get-session-output.js';
import { getSession } from '../operations/get-session.js';
import { listSessions } from '../operations/list-sessions.js';
import { restartSession } from '../operations/restart-session.js';
import { sendToSession } from '../operations/send-to-session.js';
import { spawnSession } from '../operations/spawn-session.js';
import { stopSession } from '../operations/stop-session.js';
import type { Caller } from './access/authenticator.js';

type SessionOperations = Pick<
  DaemonOperations,
  | 'spawnSession'
  | 'listSessions'
  | 'getSession'
  | 'deleteSession'
  | 'getSessionOutput'
  | 'sendToSession'
  | 'stopSession'
  | 'restartSession'
>;

const defaultLines = 500;

export function sessionHandlers(
  context: Pick<DaemonContext, 'sessions'>,
): Handlers<SessionOperations, Caller> {
  return {
    spawnSession: async ({ body, headers }) => {
      const { session, isReplay } = await spawnSession(context, body, headers['Idempotency-Key']);
      return {
        status: 201,
        body: session,
        headers: {
          Location: `/api/v1/sessions/${session.id}`,
          'Idempotent-Replayed': isReplay ? 'true' : undefined,
        },
      };
    },
    listSessions: async () => ({ status: 200, body: await listSessions(context) }),
    getSession: async ({ params }) => ({ status: 200, body: await getSession(context, params.id) }),
    deleteSession: async ({ params }) => ({
      status: 200,
      body: await deleteSession(context, params.id),
    }),
    getSessionOutput: async ({ params, query: { after, limit = defaultLines } }) => ({
      status: 200,
      body: await getSessionOutput(context, params.id, { after, limit }),
    }),
    sendToSession: async ({ params, body }) => ({
      status: 200,
      body: await sendToSession(context, params.id, body),
    }),
    stopSession: async ({ params }) => ({
      status: 200,
      body: await stopSession(context, params.id),
    }),
    restartSession: async ({ params }) => ({
      status: 200,
      body: await restartSession(context, params.id),
    }),
  };
}
