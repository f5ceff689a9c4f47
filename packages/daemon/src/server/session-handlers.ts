import type { DaemonOperations } from '@millrace/contract/daemon';
import type { Handlers } from '@millrace/kit/http';
import type { DaemonContext } from '../operations/context.js';
import { getSession } from '../operations/get-session.js';
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
  const { sessions } = context;
  const idOf = async ({ id }: { id: string }) => (await getSession(context, id)).id;
  return {
    spawnSession: async ({ body, headers }) => {
      const key = headers['Idempotency-Key'];
      // The prefix separates callers' keys from the daemon's own.
      const origin = key === undefined ? {} : { idempotencyKey: `api:${key}` };
      const { session, isReplay } = await sessions.spawn(body, origin);
      return {
        status: 201,
        body: session,
        headers: {
          Location: `/api/v1/sessions/${session.id}`,
          'Idempotent-Replayed': isReplay ? 'true' : undefined,
        },
      };
    },
    listSessions: async () => ({ status: 200, body: { sessions: await sessions.list() } }),
    getSession: async ({ params }) => ({ status: 200, body: await getSession(context, params.id) }),
    deleteSession: async ({ params }) => ({
      status: 200,
      body: await sessions.remove(await idOf(params)),
    }),
    getSessionOutput: async ({ params, query: { after, limit = defaultLines } }) => ({
      status: 200,
      body: await sessions.output(
        await idOf(params),
        after === undefined ? { limit } : { after, limit },
      ),
    }),
    sendToSession: async ({ params, body }) => ({
      status: 200,
      body: await sessions.send(await idOf(params), body.text),
    }),
    stopSession: async ({ params }) => ({
      status: 200,
      body: await sessions.stop(await idOf(params)),
    }),
    restartSession: async ({ params }) => ({
      status: 200,
      body: await sessions.restart(await idOf(params)),
    }),
  };
}
