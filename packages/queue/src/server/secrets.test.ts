import { UsageError } from '@millrace/kit/errors';
import { expect, test } from 'vitest';
import { noSecrets, parseSecrets } from './secrets.js';

const good = `
secrets:
  - {name: a, value: one two, queues: ["payments.*", mail]}
  - {name: b, value: "whsec_AAAA", queues: ["*"]}
`;

test('a secret is found from the queues that it is open to', () => {
  const secrets = parseSecrets(good, 'secrets.yaml');
  expect(secrets.size).toBe(2);
  expect(secrets.find('a', 'payments.eu.capture')).toBe('one two');
  expect(secrets.find('a', 'mail')).toBe('one two');
  expect(secrets.find('a', 'mails')).toBeUndefined();
  expect(secrets.find('b', 'anything')).toBe('whsec_AAAA');
  expect(secrets.find('c', 'mail')).toBeUndefined();
  expect(noSecrets.find('a', 'mail')).toBeUndefined();
});

test.each([
  ['no list', 'secrets: 5', 'secrets.yaml:1: secrets'],
  ['an unknown key', 'secrets: [{name: a, value: b, queues: [c], qeues: [d]}]', 'qeues'],
  ['no queues', 'secrets: [{name: a, value: b}]', 'queues'],
  ['an empty list of queues', 'secrets: [{name: a, value: b, queues: []}]', 'queues'],
  ['a bad name', 'secrets: [{name: "a b", value: b, queues: [c]}]', 'letters, digits'],
  ['a bad glob', 'secrets: [{name: a, value: b, queues: ["A?"]}]', 'queue name'],
  ['a line break', 'secrets: [{name: a, value: "b\\nc", queues: [c]}]', 'visible ASCII'],
  ['the same name twice', `${good}  - {name: a, value: x, queues: [x]}`, 'used twice: a'],
])('%s is reported with file and line, and without the value', (_name, yaml, part) => {
  expect(() => parseSecrets(yaml, 'secrets.yaml')).toThrow(UsageError);
  try {
    parseSecrets(yaml, 'secrets.yaml');
  } catch (error) {
    expect(String(error)).toContain('secrets.yaml');
    expect(String(error)).toContain(part);
    expect(String(error)).not.toContain('one two');
  }
});
