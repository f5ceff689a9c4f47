import type { DaemonOperations } from '@millrace/contract/daemon';
import type { Handlers } from '@millrace/kit/http';
import type { DaemonContext } from '../operations/context.js';
import { setForceCompact } from '../operations/set-force-compact.js';
import type { Caller } from './access/authenticator.js';

type InboxOperations = Pick<DaemonOperations, 'setForceCompact' | 'listInbox' | 'markNoteRead'>;

const defaultNotes = 200;

/** Context guard and inbox. */
export function inboxHandlers(
  context: Pick<DaemonContext, 'sessions' | 'notify' | 'forceCompact'>,
): Handlers<InboxOperations, Caller> {
  return {
    setForceCompact: async ({ params, body }) => ({
      status: 200,
      body: await setForceCompact(context, params.id, body),
    }),
    listInbox: async ({ query: { unread = false, limit = defaultNotes } }) => ({
      status: 200,
      body: { notes: await context.notify.list({ unread, limit }) },
    }),
    markNoteRead: async ({ params }) => ({
      status: 200,
      body: await context.notify.markRead(params.id),
    }),
  };
}
