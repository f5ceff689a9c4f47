import { expect, test } from 'vitest';
import { parseLine } from './import-line.js';

const options = { keyField: undefined, documents: false };

test('a line of an export is a record, any other object is a document', () => {
  const record =
    '{"id":"01J","key":"ada","rev":3,"data":{"a":1},"expires_at":"2030-01-01T00:00:00Z"}';
  expect(parseLine(record, 'f:1', options)).toEqual({
    key: 'ada',
    id: '01J',
    data: { a: 1 },
    isWhole: false,
    expiresAt: Date.UTC(2030, 0, 1),
  });
  expect(parseLine('{"key":"","data":{}}', 'f:1', options).key).toBeUndefined();
  expect(parseLine('{"name":"Ada"}', 'f:1', options).data).toEqual({ name: 'Ada' });
  const mixed = { name: 'Ada', data: { a: 1 } };
  expect(parseLine(JSON.stringify(mixed), 'f:1', options).data).toEqual(mixed);
  const inside = '{"key":"x","data":{"a":1}}';
  expect(parseLine(inside, 'f:1', { ...options, documents: true })).toMatchObject({
    key: undefined,
    data: { key: 'x', data: { a: 1 } },
  });
});

test('the key may come from the document', () => {
  const byEmail = { keyField: 'contact.email', documents: false };
  expect(parseLine('{"contact":{"email":"a@b"}}', 'f:1', byEmail).key).toBe('a@b');
  expect(parseLine('{"data":{"contact":{"email":7}}}', 'f:1', byEmail).key).toBe('7');
  expect(() => parseLine('{"contact":{}}', 'f:9', byEmail)).toThrow('f:9 has no text in "contact.');
});

test.each([
  ['nonsense', 'f:3 is not JSON'],
  ['[1]', 'f:3 must be a JSON object'],
  ['{"key":5,"data":{}}', 'f:3: key must be a text'],
  ['{"data":{},"expires_at":"soon"}', 'f:3: expires_at must be an RFC 3339 time'],
])('%s is reported with its place', (line, message) => {
  expect(() => parseLine(line, 'f:3', options)).toThrow(message);
});
