import { expect, test } from 'vitest';
import { pathOf, withParams } from './location.js';

test('pathOf: the part before the parameters', () => {
  expect(pathOf('/queues/mail?status=DEAD')).toBe('/queues/mail');
  expect(pathOf('/')).toBe('/');
});

test('withParams: sets, repeats and removes', () => {
  expect(withParams('a=1&b=2', { a: '3' })).toBe('b=2&a=3');
  expect(withParams('a=1&b=2', { a: '', b: undefined })).toBe('');
  expect(withParams('', { where: ['age gt 30', 'name eq "x&y"'] })).toBe(
    'where=age+gt+30&where=name+eq+%22x%26y%22',
  );
});
