import type { DaemonSchema } from '@millrace/contract/daemon';
import * as daemonLists from '@millrace/contract/lists/daemon';
import { systemClock } from '@millrace/kit/clock';
import { UsageError } from '@millrace/kit/errors';
import { chosen } from '../agent/choosing.js';
import { daemonApi, type DaemonApi, type DaemonFlags } from '../daemon/api.js';
import { wholeNumber } from '../base/arguments.js';
import type { Flags, Tools } from '../base/tools.js';
import { listText } from '../base/list-text.js';

type Note = DaemonSchema<'InboxNote'>;

export type InboxFlags = DaemonFlags & Flags<'limit', 'unread'>;

const maxNotes = 1_000;

export async function showInbox(flags: InboxFlags, tools: Tools): Promise<void> {
  const limit = wholeNumber(flags.limit, '--limit');
  if (limit !== undefined && (limit < 1 || limit > maxNotes)) {
    throw new UsageError(`--limit must be 1 to ${maxNotes}, not ${limit}.`);
  }
  const api = await daemonApi(flags, tools);
  const isUnread = flags.unread ?? false;
  const notes = await readNotes(api, { isUnread, limit });
  tools.terminal.show({ notes }, (out) =>
    notes.length === 0 && isUnread
      ? 'No unread notifications.\n'
      : listText(daemonLists.notes, notes, systemClock.now(), out),
  );
}

export async function readNotesAway(
  ids: readonly string[],
  flags: DaemonFlags & { all?: boolean },
  tools: Tools,
): Promise<void> {
  const isAll = flags.all ?? false;
  if (isAll === ids.length > 0) throw new UsageError('Name the notifications by id, or use --all.');
  const api = await daemonApi(flags, tools);
  const known = await readNotes(api, { isUnread: isAll, limit: maxNotes });
  const wanted = isAll ? known : ids.map((id) => theNote(known, id));
  const read: Note[] = [];
  for (const { id } of wanted) {
    read.push(await api.call('markNoteRead', { path: { id } }));
  }
  tools.terminal.show(
    { notes: read },
    read.length === 1
      ? 'Marked 1 notification as read.\n'
      : `Marked ${read.length} notifications as read.\n`,
  );
}

function theNote(notes: readonly Note[], words: string): Note {
  const named = notes.map((note) => ({ ...note, name: note.title }));
  return chosen(named, words, { kind: 'note', code: 'NOTE_NOT_FOUND', list: 'ctl inbox' });
}

async function readNotes(
  api: DaemonApi,
  { isUnread, limit }: { isUnread: boolean; limit: number | undefined },
): Promise<Note[]> {
  const query = {
    ...(isUnread ? { unread: true } : {}),
    ...(limit === undefined ? {} : { limit }),
  };
  return (await api.call('listInbox', { query })).notes;
}
