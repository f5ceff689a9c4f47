import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Workspace } from './workspace.js';

let home: string;
let root: string;
let workspace: Workspace;

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'mr-workspace-'));
  root = join(home, 'work');
  mkdirSync(root);
  writeFileSync(join(home, 'secret.txt'), 'secret');
  workspace = await Workspace.at(root);
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

test('workspace: reads and writes files inside, also in new directories', async () => {
  await workspace.write(join(root, 'a/b.txt'), 'one\ntwo\nthree');
  expect(await workspace.read('a/b.txt', {})).toBe('one\ntwo\nthree');
  expect(await workspace.read('a/b.txt', { line: 2, limit: 1 })).toBe('two');
});

test.each(['../secret.txt', '/etc/passwd', 'a/../../secret.txt', '../work-2/x', '..'])(
  'workspace: %s is outside',
  async (path) => {
    await expect(workspace.read(path, {})).rejects.toThrow('outside of the workspace');
    await expect(workspace.write(path, 'x')).rejects.toThrow('outside of the workspace');
    expect(readFileSync(join(home, 'secret.txt'), 'utf8')).toBe('secret');
  },
);

test('workspace: links that lead outside are refused, those inside are followed', async () => {
  symlinkSync(join(home, 'secret.txt'), join(root, 'file-link'));
  symlinkSync(home, join(root, 'dir-link'));
  symlinkSync(join(home, 'new.txt'), join(root, 'dangling'));
  for (const path of ['file-link', 'dir-link/secret.txt', 'dir-link/new.txt']) {
    await expect(workspace.write(path, 'x')).rejects.toThrow('outside of the workspace');
    await expect(workspace.read(path, {})).rejects.toThrow('outside of the workspace');
  }
  await expect(workspace.write('dangling', 'x')).rejects.toThrow();
  writeFileSync(join(root, 'real.txt'), 'here');
  symlinkSync(join(root, 'real.txt'), join(root, 'inner'));
  expect(await workspace.read('inner', {})).toBe('here');
});

test('workspace: directories and long files are refused', async () => {
  mkdirSync(join(root, 'directory'));
  await expect(workspace.read('directory', {})).rejects.toThrow();
  writeFileSync(join(root, 'long'), Buffer.alloc(11 * 1024 * 1024));
  await expect(workspace.read('long', {})).rejects.toThrow('larger than 10 MiB');
});
