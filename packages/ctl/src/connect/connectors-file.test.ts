import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UsageError } from '@millrace/kit/errors';
import { afterAll, expect, test } from 'vitest';
import { readConnectors } from './connectors-file.js';

const folder = mkdtempSync(join(tmpdir(), 'ctl-connectors-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const file = join(folder, 'connectors.yaml');

function read(text: string) {
  writeFileSync(file, text);
  return readConnectors(file);
}

const required = 'collection: orders, queue: mail, handler_ref: mail.send';

test('connectors file: defaults, conditions and object filters', () => {
  const [first, second] = read(`connectors:
  - {name: a, ${required}}
  - name: b
    collection: orders
    on: [delete]
    filter: {total: {gt: 10}}
    queue: mail
    handler_ref: mail.send
    payload: {id: '{{id}}'}
`);
  expect(first).toEqual({
    name: 'a',
    collection: 'orders',
    on: ['insert', 'update', 'delete'],
    filter: undefined,
    queue: 'mail',
    handler_ref: 'mail.send',
    payload: 'after',
    place: `${file}:2`,
  });
  expect(second).toMatchObject({ filter: { total: { gt: 10 } }, payload: { id: '{{id}}' } });
  const [third] = read(`connectors: [{name: c, filter: "total>10 city=Bern", ${required}}]`);
  expect(third!.filter).toEqual({
    and: [
      { field: 'total', op: 'gt', value: 10 },
      { field: 'city', op: 'eq', value: 'Bern' },
    ],
  });
});

test.each([
  ['no connectors', 'connectors: []', ':1: connectors must not be empty'],
  ['an unknown key', `connectors:\n  - {name: a, colection: x, ${required}}`, ':2: unknown key'],
  [
    'an unknown operation',
    `connectors:\n  - {name: a, on: [insrt], ${required}}`,
    ':2: connectors[0].on[0]',
  ],
  [
    'no operation',
    `connectors:\n  - {name: a, on: [], ${required}}`,
    ':2: connectors[0].on must not be empty',
  ],
  [
    'a bad condition',
    `connectors:\n  - name: a\n    filter: total>>5\n    collection: c\n    queue: q\n    handler_ref: h`,
    ':3: connectors[0].filter "total>>5" is not a condition',
  ],
  [
    'an unknown operator',
    `connectors:\n  - {name: a, filter: {total: {greater: 5}}, ${required}}`,
    ':2: connectors[0].filter is not valid: filter.total has an unknown operator "greater"',
  ],
  [
    'a condition without a value',
    `connectors:\n  - {name: a, filter: {field: total, op: gt}, ${required}}`,
    ':2: connectors[0].filter is not valid: filter.value is missing',
  ],
  [
    'a bad placeholder',
    `connectors:\n  - {name: a, payload: '{{nope}}', ${required}}`,
    ':2: connectors[0].payload has the unknown placeholder {{nope}}',
  ],
  [
    'a name twice',
    `connectors:\n  - {name: a, ${required}}\n  - {name: a, ${required}}`,
    ':3: the name "a" is already used at',
  ],
  [
    'its own collection',
    `connectors:\n  - {name: a, collection: millrace_connectors, queue: q, handler_ref: h}`,
    ':2: connectors store their own positions',
  ],
  ['not YAML', 'connectors: [', ':1'],
])('connectors file: %s is an error with file and line', (_, text, message) => {
  expect(() => read(text)).toThrow(UsageError);
  expect(() => read(text)).toThrow(`${file}${message}`);
});
