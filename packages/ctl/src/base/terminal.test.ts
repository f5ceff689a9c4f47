import { expect, test } from 'vitest';
import { openTerminal, type Outside } from './terminal.js';

const nowhere = { write: () => true };

function outside(over: Partial<Outside> = {}): Outside {
  return { stdout: nowhere, stderr: nowhere, env: {}, ...over };
}

test('--json counts anywhere before --, where another program’s words begin', () => {
  expect(openTerminal(['doctor', '--json'], outside()).json).toBe(true);
  expect(openTerminal(['check', '--', 'npm', '--json'], outside()).json).toBe(false);
});

test('a screen has its columns, a pipe has no end, COLUMNS decides over both', () => {
  const screen = { ...nowhere, isTTY: true, columns: 132 };
  expect(openTerminal([], outside({ stdout: screen })).out.columns).toBe(132);
  expect(openTerminal([], outside({ stdout: { ...screen, columns: 0 } })).out.columns).toBe(80);
  expect(openTerminal([], outside()).out.columns).toBe(Infinity);
  expect(openTerminal([], outside({ stdout: screen, env: { COLUMNS: '60' } })).out.columns).toBe(
    60,
  );
  expect(openTerminal([], outside({ env: { COLUMNS: 'wide' } })).out.columns).toBe(Infinity);
});

test('each stream decides on colour for itself', () => {
  const terminal = openTerminal([], outside({ stderr: { ...nowhere, isTTY: true } }));
  expect([terminal.out.colour, terminal.err.colour]).toEqual([false, true]);
});
