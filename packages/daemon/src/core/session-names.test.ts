import { expect, test } from 'vitest';
import { freeName, sessionsMeant } from './session.js';

const session = (id: string, name: string, status: 'working' | 'done' = 'working') => ({
  id,
  name,
  status,
});
const all = [
  session('01K9ZQ4M7T', 'docs'),
  session('01K9ZQ5AAA', 'tests', 'done'),
  session('01K9ZR0000', 'docs', 'done'),
  session('01K9ZR1111', 'old', 'done'),
  session('01K9ZR2222', 'old', 'done'),
];
const ids = (words: string) => sessionsMeant(all, words).map(({ id }) => id);

test('session names: an id, a name and a prefix of an id', () => {
  expect(ids('01K9ZQ5AAA')).toEqual(['01K9ZQ5AAA']);
  expect(ids('tests')).toEqual(['01K9ZQ5AAA']);
  expect(ids('01k9zq4')).toEqual(['01K9ZQ4M7T']);
  expect(ids('nobody')).toEqual([]);
});

test('session names: a live session comes before ended ones of its name', () => {
  expect(ids('docs')).toEqual(['01K9ZQ4M7T']);
});

test('session names: several candidates are all named', () => {
  expect(ids('old')).toEqual(['01K9ZR1111', '01K9ZR2222']);
  expect(ids('01K9ZQ')).toHaveLength(2);
});

test('session names: a prefix of fewer than six characters means nothing', () => {
  expect(ids('01K9Z')).toEqual([]);
  expect(ids('')).toEqual([]);
});

test('session names: a taken name gets a number, and stays within the limit', () => {
  expect(freeName('docs', new Set())).toBe('docs');
  expect(freeName('docs', new Set(['docs', 'docs-2']))).toBe('docs-3');
  expect(freeName('x'.repeat(128), new Set(['x'.repeat(128)]))).toBe(`${'x'.repeat(126)}-2`);
});
