import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Notify } from '../notify/index.js';

/** Notes of the inbox, newest first. */
export async function listInbox(
  { notify }: { notify: Pick<Notify, 'list'> },
  which: { unread: boolean; limit: number },
): Promise<DaemonSchema<'Inbox'>> {
  return { notes: await notify.list(which) };
}
