import { expect, test } from 'vitest';
import { readDialog } from './dialog.js';

const rule = '─'.repeat(40);

test('dialog: claude shows the command above the question', () => {
  const screen = [
    '● I will run the tests.',
    rule,
    ' Bash command',
    '',
    '   make test',
    '   Run the tests',
    '',
    ' Do you want to proceed?',
    ' ❯ 1. Yes',
    '   2. Yes, and always allow make commands in',
    '      /src/mill',
    '   3. No, and tell Claude what to do differently (esc)',
    '',
    ' Esc to cancel',
  ].join('\n');
  expect(readDialog('claude', screen)).toEqual({
    kind: 'permission',
    title: 'Do you want to proceed?',
    body: 'make test\nRun the tests',
    tool: 'execute',
    options: [
      { id: '1', label: 'Yes', kind: 'allow_once' },
      {
        id: '2',
        label: 'Yes, and always allow make commands in /src/mill',
        kind: 'allow_always',
      },
      { id: '3', label: 'No, and tell Claude what to do differently (esc)', kind: 'reject' },
    ],
    selected: '1',
  });
});

test('dialog: codex shows the command below the question', () => {
  const screen = [
    '• Working on it',
    '  Would you like to run the following command?',
    '  Reason: needs the network',
    '  $ npm ci',
    '› 1. Yes, proceed (y)',
    '  2. No, and tell Codex what to do differently (esc)',
    '  Press enter to confirm or esc to cancel',
  ].join('\n');
  expect(readDialog('codex', screen)).toMatchObject({
    kind: 'permission',
    tool: 'execute',
    title: 'Would you like to run the following command?',
    body: 'npm ci',
    options: [{ kind: 'allow_once' }, { kind: 'reject' }],
  });
});

test('dialog: gemini draws a box', () => {
  const screen = [
    '╭──────────────────────────────╮',
    '│ ? Shell  make test           │',
    '│                              │',
    '│ Allow execution of [Shell]?  │',
    '│                              │',
    '│   1. Allow once              │',
    '│ ● 2. Allow always            │',
    '│   3. No, suggest changes     │',
    '╰──────────────────────────────╯',
  ].join('\n');
  expect(readDialog('gemini', screen)).toMatchObject({
    tool: 'execute',
    body: 'make test',
    selected: '2',
    options: [{ kind: 'allow_once' }, { kind: 'allow_always' }, { kind: 'reject' }],
  });
});

test('dialog: opencode shows its choices side by side', () => {
  const screen = [
    '  ┃  △ Permission required',
    '  ┃    # Shell command',
    '  ┃  $ make test',
    '  ┃   Allow once   Allow always   Reject        ⇆ select  enter confirm',
  ].join('\n');
  expect(readDialog('opencode', screen)).toMatchObject({
    title: 'Permission required?',
    body: 'make test',
    tool: 'execute',
    options: [
      { id: '1', label: 'Allow once', kind: 'allow_once' },
      { id: '2', label: 'Allow always', kind: 'allow_always' },
      { id: '3', label: 'Reject', kind: 'reject' },
    ],
  });
});

test('dialog: options that allow nothing are a choice, and none at all is a text', () => {
  const colours = [rule, ' Which colour?', ' ❯ 1. Red', '   2. Blue'].join('\n');
  expect(readDialog('claude', colours)).toMatchObject({
    kind: 'choice',
    title: 'Which colour?',
    tool: null,
    options: [{ kind: 'choice' }, { kind: 'choice' }],
  });
  const typed = ' Do you trust the files in this folder?\n Enter to confirm · Esc to exit';
  expect(readDialog('claude', typed)).toMatchObject({ kind: 'text', options: [] });
});

test('dialog: an edit is distinguished from a command', () => {
  const edit = ' Do you want to make this edit to a.ts?\n ❯ 1. Yes\n   2. No';
  expect(readDialog('claude', edit)).toMatchObject({ tool: 'edit', kind: 'permission' });
});

test('dialog: a screen that asks nothing has none', () => {
  expect(readDialog('claude', `● Done\n${rule}\n> \n${rule}`)).toBeUndefined();
  expect(readDialog('goose', ' Proceed?\n 1. Yes\n 2. No')).toBeUndefined();
});
