import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findProgram } from './programs.js';

let home: string;
const at = (...names: string[]) => join(home, ...names);

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'mr-path-'));
  for (const name of ['a', 'b']) mkdirSync(at(name));
  const add = (file: string, mode: number) => {
    writeFileSync(file, '');
    chmodSync(file, mode);
  };
  add(at('a', 'plain'), 0o644);
  add(at('b', 'plain'), 0o755);
  add(at('b', 'tool'), 0o755);
  mkdirSync(at('a', 'tool'));
  symlinkSync(at('b', 'tool'), at('a', 'link'));
  symlinkSync(at('nowhere'), at('a', 'dangling'));
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

const path = () => [at('missing'), at('a'), at('a', 'plain'), at('b')].join(':');

test('the first executable file of the name is found', async () => {
  expect(await findProgram('plain', path())).toBe(at('b', 'plain'));
  expect(await findProgram('tool', path())).toBe(at('b', 'tool'));
  expect(await findProgram('link', path())).toBe(at('a', 'link'));
});

test('what is no program is not', async () => {
  expect(await findProgram('dangling', path())).toBe(undefined);
  expect(await findProgram('nothing', path())).toBe(undefined);
  expect(await findProgram('plain', '')).toBe(undefined);
  expect(await findProgram('plain', undefined)).toBe(undefined);
  expect(await findProgram('x'.repeat(500), path())).toBe(undefined);
});

test('the current directory is never searched', async () => {
  const before = process.cwd();
  process.chdir(at('b'));
  try {
    for (const search of [':', '.', '::/nowhere', 'b', '../b']) {
      expect(await findProgram('tool', search)).toBe(undefined);
    }
    expect(await findProgram('./tool', path())).toBe(undefined);
    expect(await findProgram('../b/tool', path())).toBe(undefined);
  } finally {
    process.chdir(before);
  }
});

test('an absolute path is taken at its word', async () => {
  expect(await findProgram(at('b', 'tool'), undefined)).toBe(at('b', 'tool'));
  expect(await findProgram(at('a', 'plain'), undefined)).toBe(undefined);
});
