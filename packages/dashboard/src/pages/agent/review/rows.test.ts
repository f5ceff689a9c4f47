import { expect, test } from 'vitest';
import type { DiffFile } from './api.js';
import { diffRows, fileTree } from './rows.js';

const file = (path: string, lines: string[] = [], more: Partial<DiffFile> = {}) =>
  ({
    path,
    old_path: null,
    status: 'modified',
    old_mode: '100644',
    new_mode: '100644',
    binary: false,
    additions: 1,
    deletions: 1,
    hunks:
      lines.length === 0
        ? []
        : [{ old_start: 3, old_lines: 3, new_start: 3, new_lines: 2, heading: 'send()', lines }],
    ...more,
  }) satisfies DiffFile;

const lines = [' a', '-b', '-c', '+d', '\\ No newline at end of file'];

test('diffRows: unified lines are numbered on their own side', () => {
  expect(diffRows([file('x.ts', lines)], 'unified').slice(1)).toEqual([
    { kind: 'hunk', text: '@@ -3,3 +3,2 @@ send()' },
    { kind: 'line', change: 'same', old: { number: 3, text: 'a' }, new: { number: 3, text: 'a' } },
    { kind: 'line', change: 'deleted', old: { number: 4, text: 'b' } },
    { kind: 'line', change: 'deleted', old: { number: 5, text: 'c' } },
    { kind: 'line', change: 'added', new: { number: 4, text: 'd' } },
    { kind: 'note', text: 'No newline at end of file' },
  ]);
});

test('diffRows: split puts a deleted line beside the added one', () => {
  expect(diffRows([file('x.ts', lines)], 'split').slice(3)).toEqual([
    {
      kind: 'line',
      change: 'changed',
      old: { number: 4, text: 'b' },
      new: { number: 4, text: 'd' },
    },
    { kind: 'line', change: 'deleted', old: { number: 5, text: 'c' } },
  ]);
});

test('diffRows: split does not pair lines of different changes', () => {
  const rows = diffRows([file('x.ts', ['+a', '-b'])], 'split').slice(2);
  expect(rows).toMatchObject([{ change: 'added' }, { change: 'deleted' }]);
});

test('diffRows: notes for renames, modes and binary files', () => {
  const notes = (more: Partial<DiffFile>) =>
    diffRows([file('x', [], more)], 'unified')
      .slice(1)
      .map((row) => row.kind === 'note' && row.text);
  expect(notes({ old_path: 'y', status: 'renamed' })).toEqual(['Before: y']);
  expect(notes({ new_mode: '100755' })).toEqual(['Mode changed from 100644 to 100755.']);
  expect(notes({ binary: true })).toEqual(['Binary file.']);
  expect(notes({})).toEqual(['No lines are shown.']);
});

test('fileTree: joins folders that have only one folder', () => {
  const tree = fileTree([file('packages/queue/src/a.ts'), file('packages/queue/b.ts'), file('c')]);
  expect(tree.files.map(({ path }) => path)).toEqual(['c']);
  expect(tree.folders.map(({ name }) => name)).toEqual(['packages/queue']);
  expect(tree.folders[0]!.folders.map(({ name }) => name)).toEqual(['src']);
});
