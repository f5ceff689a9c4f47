import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { editEntries, indexOfEntry, readEntries } from '../base/credentials.js';
import { keys as kind, type KeyEntry } from './keys.js';

let folder = '';
let file = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-keys-'));
  file = join(folder, 'keys.yaml');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function entry(id: string): KeyEntry {
  return { id, secret_sha256: 'a'.repeat(64), scopes: [{ collections: '*', access: 'read' }] };
}

const add = (id: string) =>
  editEntries(kind, file, (keys, document) => keys.add(document.createNode(entry(id))));

test('a new file is for its owner alone, an old one keeps its mode', async () => {
  await add('one');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  chmodSync(file, 0o640);
  await add('two');
  expect(statSync(file).mode & 0o777).toBe(0o640);
  expect((await readEntries(kind, file)).map(({ id }) => id)).toEqual(['one', 'two']);
  expect(readdirSync(folder)).toEqual(['keys.yaml']);
});

test('comments and the order of others stay', async () => {
  writeFileSync(
    file,
    `# ours
keys:
  # for the shop
  - {id: shop, secret_sha256: ${'b'.repeat(64)}, scopes: []}
  # for the mill
  - {id: mill, secret_sha256: ${'c'.repeat(64)}, scopes: []}
`,
  );
  await add('new');
  await editEntries(kind, file, (keys) => keys.delete(indexOfEntry(kind, keys, 'shop')));
  const text = readFileSync(file, 'utf8');
  expect(text).toContain('# ours');
  expect(text).toContain('# for the mill');
  expect((await readEntries(kind, file)).map(({ id }) => id)).toEqual(['mill', 'new']);
});

test('an edit that the server would not take leaves the file as it was', async () => {
  await add('one');
  const before = readFileSync(file, 'utf8');
  await expect(add('one')).rejects.toThrow('is used twice');
  await expect(add('bad id')).rejects.toThrow('must be 1 to 64 letters');
  expect(readFileSync(file, 'utf8')).toBe(before);
  expect(readdirSync(folder)).toEqual(['keys.yaml']);
});

test('a file that is wrong is reported with its line and not touched', async () => {
  writeFileSync(file, 'keys:\n  - id: a\n    secret: hunter2\n');
  await expect(add('b')).rejects.toThrow(/keys\.yaml:\d/);
  await expect(add('b')).rejects.not.toThrow('hunter2');
  await expect(readEntries(kind, join(folder, 'none.yaml'))).rejects.toThrow('no such file');
});

test('two edits at once: one is reported to wait, none is lost', async () => {
  const outcomes = await Promise.allSettled([add('one'), add('two')]);
  const done = outcomes.filter(({ status }) => status === 'fulfilled').length;
  expect(done).toBeGreaterThan(0);
  expect(await readEntries(kind, file)).toHaveLength(done);
  expect(readdirSync(folder)).toEqual(['keys.yaml']);
});
