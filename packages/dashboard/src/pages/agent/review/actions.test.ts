import { expect, test } from 'vitest';
import { bodyOf, doneText } from './actions.js';

function form(fields: Readonly<Record<string, string>>): FormData {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.set(name, value);
  return data;
}

test('bodyOf: leaves out empty fields and reads check boxes', () => {
  expect(bodyOf('commit', form({ message: ' Fix it ', force: 'on' }))).toEqual({
    message: 'Fix it',
    force: true,
  });
  expect(bodyOf('open-pr', form({ title: 'T', body: '  ' }))).toEqual({ title: 'T' });
});

test('bodyOf: a rebase merge has no message', () => {
  const fields = form({ strategy: 'rebase', message: 'unused' });
  expect(bodyOf('merge', fields)).toEqual({ strategy: 'rebase' });
  expect(bodyOf('merge', form({ strategy: 'squash', message: 'm' }))).toEqual({
    strategy: 'squash',
    message: 'm',
  });
});

test('doneText: says what happened', () => {
  const commit = '7f3c9d0e4b5a6f71';
  expect(doneText('commit', { commit, file_count: 1 })).toBe('Committed 1 file as 7f3c9d0e.');
  expect(doneText('push', { branch: 'b', remote: 'origin' })).toBe('Pushed b to origin.');
  expect(doneText('merge', { base: 'main', commit })).toBe('Merged into main as 7f3c9d0e.');
  expect(doneText('rebase', { commit_count: 0 })).toBe('The branch is up to date.');
  expect(doneText('rebase', { commit_count: 2, base: 'main', commit })).toBe(
    'Rebased on main, now at 7f3c9d0e.',
  );
});
