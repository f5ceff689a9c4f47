import { expect, test } from 'vitest';
import { cellText, editedValue, fieldNames, isEditable, shownFields } from './fields.js';

const record = (data: Record<string, unknown>) => ({ data });

test('fieldNames: the most frequent fields first', () => {
  const records = [record({ name: 'Ada', age: 1 }), record({ age: 2 }), record({ age: 3, z: 1 })];
  expect(fieldNames(records)).toEqual(['age', 'name', 'z']);
});

test('shownFields: the choice, else the first fields', () => {
  expect(shownFields('b,a', ['a', 'b', 'c'])).toEqual(['b', 'a']);
  expect(shownFields('', ['a', 'b', 'c', 'd', 'e', 'f', 'g'])).toHaveLength(6);
});

test('cellText: texts as they are, other values as JSON', () => {
  expect([
    cellText('x'),
    cellText(1),
    cellText({ a: 1 }),
    cellText(null),
    cellText(undefined),
  ]).toEqual(['x', '1', '{"a":1}', 'null', '']);
  expect([isEditable('short'), isEditable('a\nb'), isEditable('x'.repeat(300))]).toEqual([
    true,
    false,
    false,
  ]);
});

test('editedValue: keeps the type of the value', () => {
  expect(editedValue('a', '18')).toEqual({ value: '18' });
  expect(editedValue(17, '18')).toEqual({ value: 18 });
  expect(editedValue(17, 'many')).toEqual({ error: 'Enter JSON, such as 17.' });
  expect(editedValue({ a: 1 }, '{"a":2}')).toEqual({ value: { a: 2 } });
  expect(editedValue(undefined, 'new')).toEqual({ value: 'new' });
});
