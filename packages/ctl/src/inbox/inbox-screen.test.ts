import * as daemonLists from '@millrace/contract/lists/daemon';
import { expect, test } from 'vitest';
import { contractExample } from '../daemon/contract-examples.test-support.js';
import { plain } from '../render/paint.js';
import { listText } from '../base/list-text.js';

const now = Date.parse('2026-01-15T09:30:00.000Z');
const notes = [
  contractExample('Inbox').notes[0]!,
  { ...contractExample('InboxNote'), id: '01K9ZS0M5N7P9Q1R2S4T6V8W0X' },
];

test('at 80 columns a star marks what is unread', () => {
  expect(listText(daemonLists.notes, notes, now, { columns: 80, paint: plain })).toBe(
    `
   ID        AGE     SEVERITY  NOTIFICATION
*  01K9ZS3M  2m ago  critical  test failed on retry-upload:
                               https://ci.example.org/runs/42
   01K9ZS0M  2m ago  warning   docs waits for an answer: It asks whether it may
                               run a command.
* 1 unread. Mark one as read with \`ctl inbox read ID\`, or all with --all.
`.slice(1),
  );
});

test('at 140 columns the agents are named', () => {
  expect(listText(daemonLists.notes, notes, now, { columns: 140, paint: plain })).toBe(
    `
   ID        AGE     SEVERITY  AGENT                       NOTIFICATION
*  01K9ZS3M  2m ago  critical  01K9ZQ4M7T3V8X2B6C0D5E1F9G  test failed on retry-upload: https://ci.example.org/runs/42
   01K9ZS0M  2m ago  warning   01K9ZQ5A2N4P6R8S0T1V3W5X7Y  docs waits for an answer: It asks whether it may run a command.
* 1 unread. Mark one as read with \`ctl inbox read ID\`, or all with --all.
`.slice(1),
  );
});

test('with --utc the times are timestamps', () => {
  const screen = listText(daemonLists.notes, notes, now, { columns: 140, paint: plain, utc: true });
  expect(screen).toMatch(new RegExp(`01K9ZS3M +${notes[0]!.ts} `));
  expect(screen).not.toContain('ago');
});

test('when all is read there is no hint', () => {
  const read = notes.map((note) => ({ ...note, read: true }));
  expect(listText(daemonLists.notes, read, now, { columns: 80, paint: plain })).not.toContain('*');
});
