import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Notify } from '../notify/index.js';

/** Marks a note as read. Idempotent. */
export function markNoteRead(
  { notify }: { notify: Pick<Notify, 'markRead'> },
  id: string,
): Promise<DaemonSchema<'InboxNote'>> {
  return notify.markRead(id);
}
