import { expect, test } from 'vitest';
import { contractExample } from '../daemon/contract-examples.test-support.js';
import { plain, painter } from '../render/paint.js';
import { branchesScreen } from './branches.js';

const { branches } = contractExample('BranchStandings');
const now = Date.parse('2026-01-15T09:30:00.000Z');
const screen = (columns: number, shown = branches, paint = plain) =>
  branchesScreen(shown, now, { columns, paint });

test('at 80 columns each agent has a row, and what is wrong is below', () => {
  expect(screen(80)).toBe(
    `
AGENT         BRANCH        BASE  AHEAD  BEHIND  MERGED  CI       CHECKED
retry-upload  retry-upload  main  3      12      no      failure  30s ago
docs          docs          -     -      -       -       -        30s ago
retry-upload: test failed, https://ci.example.org/runs/42
docs: git took longer than 10 seconds.
`.slice(1),
  );
});

test('at 140 columns there are the runs and the ids as well', () => {
  expect(screen(140)).toBe(
    `
AGENT         BRANCH        BASE  AHEAD  BEHIND  DIRTY  MERGED  CI       CHECKED  CHECKS         ID
retry-upload  retry-upload  main  3      12      -      no      failure  30s ago  1 of 2 failed  01K9ZQ4M7T3V8X2B6C0D5E1F9G
docs          docs          -     -      -       -      -       -        30s ago  -              01K9ZQ5A2N4P6R8S0T1V3W5X7Y
retry-upload: test failed, https://ci.example.org/runs/42
docs: git took longer than 10 seconds.
`.slice(1),
  );
});

test('merged, pending and not yet seen are said in words', () => {
  const [standing] = branches;
  const shown = [
    {
      ...standing!,
      merged: true,
      checks: [],
      ci: { state: 'pending' as const, workflow: null, url: null },
    },
    {
      ...standing!,
      observed_at: null,
      checks: [],
      ci: { state: 'none' as const, workflow: null, url: null },
    },
  ];
  expect(screen(80, shown)).toMatch(/ yes +pending +30s ago\n.* no +none +not yet\n$/);
});

test('what is wrong with many is reported once', () => {
  const shown = branches.map((standing) => ({
    ...standing,
    checks: [],
    error: 'gh is not installed',
  }));
  expect(screen(80, shown).split('\n').slice(3)).toEqual(['2 agents: gh is not installed.', '']);
});

test('failures and branches far behind stand out', () => {
  const text = screen(80, branches, painter);
  expect(text).toContain(painter('bad', 'failure'));
  expect(text).toContain(painter('warn', '12'));
});

test('without branches it says how to find out why', () => {
  expect(screen(80, [])).toMatch(/^No agent works on a branch\. Check with `ctl config branches`/);
});
