import { expect, test } from 'vitest';
import {
  checkTemplate,
  fillTemplate,
  usesBefore,
  type ChangeFields,
  type Json,
} from './template.js';

const change: ChangeFields = {
  op: 'update',
  collection: 'orders',
  id: '01JD3Z8Q4M7X2N5V9RTBKWCH6E',
  key: 'o1',
  rev: 2,
  seq: 7,
  committed_at: '2026-03-02T09:15:00.000Z',
  before: { total: 5 },
  after: { total: 6, who: { name: 'Ada' }, tags: ['a', 'b'] },
};

test.each<[Json, Json]>([
  ['{{after.total}}', 6],
  ['{{ after.who }}', { name: 'Ada' }],
  ['{{after.tags.1}}', 'b'],
  ['{{after.none.deeper}}', null],
  ['{{after.constructor}}', null],
  ['Order {{key}}: {{before.total}} -> {{after.total}}', 'Order o1: 5 -> 6'],
  ['{{after.who}}, {{after.none}}!', '{"name":"Ada"}, !'],
  [
    { a: ['{{seq}}', true, 3, null], b: { c: '{{op}}' } },
    { a: [7, true, 3, null], b: { c: 'update' } },
  ],
  ['{ {after} }', '{ {after} }'],
])('template: %j', (template, filled) => {
  expect(fillTemplate(template, change)).toEqual(filled);
});

test('template: an unknown placeholder is refused', () => {
  checkTemplate({ a: ['{{after.x}}', 'plain', 5] });
  expect(() => checkTemplate({ a: ['{{aftr.x}}'] })).toThrow(
    'has the unknown placeholder {{aftr.x}}; did you mean "after"?',
  );
  expect(() => checkTemplate('{{}}')).toThrow('Use one of op, collection');
});

test('template: notices that it needs the document before the change', () => {
  expect(usesBefore({ a: ['{{ before.x }}'] })).toBe(true);
  expect(usesBefore('{{before}}')).toBe(true);
  expect(usesBefore('{{after.before}} before')).toBe(false);
});
