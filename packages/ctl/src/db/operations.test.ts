import { expect, test } from 'vitest';
import { parseOperations } from './operations.js';

test('operations come as a list or line by line', () => {
  const insert = { op: 'insert', collection: 'people', key: 'ada', data: { a: 1 } };
  const remove = { op: 'delete', collection: 'people', key: 'bob' };
  const list = parseOperations(JSON.stringify([insert, remove]), 'ops.json');
  const lines = parseOperations(`${JSON.stringify(insert)}\n\n${JSON.stringify(remove)}\n`, 'x');
  expect(lines).toEqual(list);
  expect(list).toMatchObject([insert, remove]);
});

test.each(['update', 'upsert', 'updateIfRev'])('%s takes update in place of data', (op) => {
  const operation = { op, collection: 'people', key: 'ada', update: { $inc: { age: 1 } } };
  const { update, ...rest } = operation;
  expect(parseOperations(JSON.stringify(operation), 'ops')).toMatchObject([
    { ...rest, data: update },
  ]);
});

test.each([
  ['', 'ops has no operations'],
  [
    '[{"op":"insrt","collection":"p","data":{}}]',
    /operation 1: op must be one of .* did you mean "insert"\?$/,
  ],
  ['{"op":"insert","collection":"p"}', 'ops:1: data must be a JSON object'],
  ['{"op":"insert","data":{}}', 'collection is missing'],
  ['{"op":"insert","collection":"p","update":{"$set":{"a":1}}}', 'insert takes no update'],
  ['{"op":"update","collection":"p","key":"k","data":{},"update":{}}', 'data or update, not both'],
  ['{"op":"update","collection":"p","key":"k","update":1}', 'update must be a JSON object'],
  ['{"op":"update","collection":"p","key":"k","update":{"a":1}}', 'update has no operator'],
  [
    '{"op":"upsert","collection":"p","key":"k","mode":"merge","update":{"$inc":{"n":1}}}',
    'mode is for data',
  ],
  ['{"op":"update","collection":"p","data":{}}', 'update needs either an id or a key'],
  ['{"op":"delete","collection":"p","id":"a","key":"b"}', 'either an id or a key'],
  ['{"op":"upsert","collection":"p","id":"a","data":{}}', 'upsert needs a key'],
  ['{"op":"get","collection":"p","kee":"b"}', /unknown member "kee".*key/],
  ['{"op":"get","collection":"p","key":5}', 'key must be a text'],
  ['{"op":"upsert","collection":"p","key":"k","data":{},"ttl":"soon"}', 'ttl must be a duration'],
  ['{"op":"updateIfRev","collection":"p","key":"k","data":{},"expected_rev":-1}', 'expected_rev'],
])('%s is refused', (text, message) => {
  expect(() => parseOperations(text, 'ops')).toThrow(message);
});
