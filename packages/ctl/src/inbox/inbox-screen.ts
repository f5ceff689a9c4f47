import type { DaemonSchema } from '@millrace/contract/daemon';
import { asTyped } from '../base/command-name.js';
import { tellingIds } from '../agent/choosing.js';
import type { Tone } from '../render/paint.js';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import { timeText } from '../render/time.js';

type Note = DaemonSchema<'InboxNote'>;

const tones: Readonly<Record<Note['severity'], Tone>> = {
  info: 'dim',
  warning: 'warn',
  critical: 'bad',
};

const wideColumns = 120;

/** Table of notifications, newest first. */
export function inboxScreen(notes: readonly Note[], now: number, sheet: Sheet): string {
  const isWide = sheet.columns >= wideColumns;
  const shortIds = tellingIds(
    notes.map(({ id }) => id),
    sheet,
  );
  const columns = [
    { title: '' },
    { title: 'ID' },
    { title: 'AGE' },
    { title: 'SEVERITY' },
    ...(isWide ? [{ title: 'AGENT' }] : []),
    { title: 'NOTIFICATION', overflow: 'wrap' as const },
  ];
  const rows = notes.map((note): Cell[] => [
    note.read ? '' : { text: '*', tone: 'strong' },
    shortIds.get(note.id)!,
    timeText(Date.parse(note.ts), now, sheet),
    { text: note.severity, tone: tones[note.severity] },
    ...(isWide ? [note.agent_id ?? '-'] : []),
    note.body === '' ? note.title : `${note.title}: ${note.body}`,
  ]);
  const unread = notes.filter(({ read }) => !read).length;
  const hint =
    unread === 0
      ? ''
      : asTyped(
          `* ${unread} unread. Mark one as read with \`ctl inbox read ID\`, or all with --all.\n`,
        );
  return renderTable(columns, rows, sheet) + hint;
}
