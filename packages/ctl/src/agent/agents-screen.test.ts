import type { DaemonSchema } from '@millrace/contract/daemon';
import * as daemonLists from '@millrace/contract/lists/daemon';
import { expect, test } from 'vitest';
import { contractExample } from '../daemon/contract-examples.test-support.js';
import { painter, plain } from '../render/paint.js';
import { factsText, listText } from '../base/list-text.js';

type Session = DaemonSchema<'Session'>;

const now = Date.parse('2026-01-15T09:30:00.000Z');
const working = contractExample('Session');
const waiting = contractExample('SessionList').sessions[0]!;
const failed: Session = {
  ...working,
  id: '01K9ZP0000000000000000000A',
  name: 'update-every-dependency-and-run-all-tests',
  status: 'errored',
  backend: 'cursor-agent',
  branch: null,
  context_tokens: null,
  context_state: null,
  exit_code: 3,
  pid: null,
  last_error: 'exit code 3',
  status_reason: 'its process ended with exit code 3',
  status_since: '2026-01-14T09:30:00.000Z',
};
const all = [waiting, working, failed];

test('at 80 columns the ids are as short as they can be', () => {
  expect(listText(daemonLists.sessions, all, now, { columns: 80, paint: plain })).toBe(
    `
ID        NAME                STATUS             DURATION  BACKEND       CONTEXT
01K9ZQ5A  docs                waiting_for_input  2m        codex         212k
01K9ZQ4M  retry-upload        working            1m        claude        118k
01K9ZP00  update-every-depe…  errored            1d        cursor-agent  -
`.slice(1),
  );
});

test('at 140 columns there is room for branches and reasons', () => {
  expect(listText(daemonLists.sessions, all, now, { columns: 140, paint: plain })).toBe(
    `
ID        NAME                             STATUS             DURATION  BACKEND       CONTEXT  BRANCH        REASON
01K9ZQ5A  docs                             waiting_for_input  2m        codex         212k     docs          asks whether it may run a comm…
01K9ZQ4M  retry-upload                     working            1m        claude        118k     retry-upload  a tool call is running
01K9ZP00  update-every-dependency-and-ru…  errored            1d        cursor-agent  -        -             exit code 3
`.slice(1),
  );
});

test('without agents it says how to start one', () => {
  expect(listText(daemonLists.sessions, [], now, { columns: 80, paint: plain })).toMatch(
    /ctl agent spawn/,
  );
});

test('colours are added without moving anything', () => {
  const coloured = listText(daemonLists.sessions, all, now, { columns: 80, paint: painter });
  // oxlint-disable-next-line no-control-regex
  const bare = coloured.replaceAll(/\u001B\[\d+m/g, '');
  expect(coloured).not.toBe(bare);
  expect(bare).toBe(listText(daemonLists.sessions, all, now, { columns: 80, paint: plain }));
});

test.for([80, 140])(
  'the sheet of an agent at %i columns leaves out what there is none of',
  (columns) => {
    expect(factsText(daemonLists.sessionFacts(waiting), now, { columns, paint: plain })).toBe(
      `
agent            01K9ZQ5A2N4P6R8S0T1V3W5X7Y
name             docs
status           waiting_for_input
why              asks whether it may run a command
since            2026-01-15T09:28:00.000Z (2m ago)
backend          codex
driver           tmux
backend session  5d2c8b1e
prompt           Describe the upload command.
directory        /home/ada/src/mill
repository       /home/ada/src/mill
branch           docs
pipeline         01K9ZR0B1C2D3E4F5G6H7J8K9M
job              docs
context          212k tokens, warning
compact          forced: off
process          48377
restarts         1
spawned          2026-01-15T09:25:00.000Z (5m ago)
`.slice(1),
    );
  },
);

test('what an agent wrote about itself cannot move the cursor', () => {
  const evil = { ...failed, last_error: 'a\u001B[2Jb\nc', prompt: 'x\u0007' };
  const screen = factsText(daemonLists.sessionFacts(evil), now, { columns: 80, paint: plain });
  expect(screen).not.toMatch(/[^\P{Cc}\n]/u);
});
