import fc from 'fast-check';
import { expect, test } from 'vitest';
import { globMatches, Grants } from './tokens.js';

test.each([
  ['payments', 'payments', true],
  ['payments', 'payments2', false],
  ['payments.*', 'payments.capture', true],
  ['payments.*', 'payments.eu.capture', true],
  ['payments.*', 'payments.', true],
  ['payments.*', 'payments', false],
  ['payments.*', 'xpayments.a', false],
  ['*', '', true],
  ['*.dlq', 'a.b.dlq', true],
  ['a*b*c', 'abc', true],
  ['a*b*c', 'a-b-b-c', true],
  ['a*b*c', 'a-c-b', false],
  ['a*a', 'a', false],
  ['**', 'x', true],
  ['a.c', 'abc', false],
  ['a?c', 'abc', false],
  ['[a]', 'a', false],
])('%s matches %s: %s', (glob, name, expected) => {
  expect(globMatches(glob, name)).toBe(expected);
});

test('a glob means what the regular expression with .* for * means', () => {
  const letters = fc.string({ unit: fc.constantFrom('a', 'b', '.', '*'), maxLength: 8 });
  const names = fc.string({ unit: fc.constantFrom('a', 'b', '.'), maxLength: 10 });
  fc.assert(
    fc.property(letters, names, (glob, name) => {
      const pattern = glob.replaceAll('.', '\\.').replaceAll('*', '.*');
      expect(globMatches(glob, name)).toBe(new RegExp(`^${pattern}$`).test(name));
    }),
    { numRuns: 2000 },
  );
});

test('many stars take no exponential time', () => {
  expect(globMatches('*a'.repeat(60) + 'b', 'a'.repeat(128))).toBe(false);
});

const roles = ['submitter', 'operator', 'admin'] as const;
const levels = [['submitter', 'worker'], 'operator'] as const;

test('a role contains those before it, on the names its grant covers', () => {
  const grants = new Grants(roles, [
    { queue: 'payments.*', role: 'operator' },
    { queue: 'mail', role: 'admin' },
  ]);
  expect(grants.allows('payments.capture', 'submitter')).toBe(true);
  expect(grants.allows('payments.capture', 'operator')).toBe(true);
  expect(grants.allows('payments.capture', 'admin')).toBe(false);
  expect(grants.allows('mail', 'admin')).toBe(true);
  expect(grants.allows('other', 'submitter')).toBe(false);
  expect(grants.allowsSomewhere('admin')).toBe(true);
  expect(new Grants(roles, []).allowsSomewhere('submitter')).toBe(false);
});

test('a role that does not exist is a mistake of the caller', () => {
  expect(() => new Grants(roles, [{ queue: '*', role: 'owner' as never }])).toThrow(
    'owner is not a role; roles are submitter, operator, admin',
  );
});

test('roles of one level do not contain each other', () => {
  const grants = new Grants<'submitter' | 'worker' | 'operator'>(levels, [
    { queue: 'mail', role: 'worker' },
    { queue: 'other', role: 'operator' },
  ]);
  expect(grants.allows('mail', 'worker')).toBe(true);
  expect(grants.allows('mail', 'submitter')).toBe(false);
  expect(grants.allows('mail', 'operator')).toBe(false);
  expect(grants.allows('other', 'worker')).toBe(true);
  expect(grants.allows('other', 'submitter')).toBe(true);
});
