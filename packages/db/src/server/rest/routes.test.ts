import { dbRoutes, type DbRoute } from '@millrace/contract/db';
import { Refusal } from '@millrace/kit/errors';
import { expect, test } from 'vitest';
import { restRouter } from './routes.js';

const byPath = new Map<string, Map<string, DbRoute>>();
const table = restRouter<Map<string, DbRoute>>();
for (const route of dbRoutes) {
  const methods = byPath.get(route.path) ?? new Map<string, DbRoute>();
  if (!byPath.has(route.path)) table.add(route.path, methods);
  byPath.set(route.path, methods.set(route.method, route));
}
const values: Record<string, string> = {
  collection: 'people',
  id: '01J',
  index: 'by_city',
  key: 'k',
  tx_id: 't',
};

test.each(dbRoutes.map((route) => [route.method, route.path, route] as const))(
  'routes: %s %s matches its binding',
  (method, path, route) => {
    const sent = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => values[name]!);
    const found = table.find(sent)!;
    expect(found.leaf.get(method)).toBe(route);
    expect(Object.keys(found.params)).toEqual([...route.pathFields]);
    for (const name of route.pathFields) expect(found.params[name]).toBe(values[name]);
  },
);

test.each([
  ['/v1/people/keys/a%3Ab', 'a:b'],
  ['/v1/people/keys/a%2Fb', 'a/b'],
  ['/v1/people/keys/x%3Aupsert', 'x:upsert'],
  ['/v1/people/keys/%E2%82%AC', '€'],
  ['/v1/people/keys/a+b', 'a+b'],
])('routes: %s has the key %s', (path, key) => {
  expect(table.find(path)?.params['key']).toBe(key);
});

test.each([
  '/',
  '/v1',
  '/v1/people',
  '/v1/people/records/',
  '/v1//records',
  '/v1/people/keys/:upsert',
  '/v1/people/keys/a:b',
  '/v1/people/keys/k:upsert:upsert',
  '/v1/people/records:find/',
  '/v1/people/%72ecords',
  '/v2/people/records',
])('routes: %s is not found', (path) => {
  expect(table.find(path)).toBeUndefined();
});

test('routes: a collection may have the name of a path segment', () => {
  expect(table.find('/v1/tx/records')?.params).toEqual({ collection: 'tx' });
  expect(table.find('/v1/admin/records:find')?.params).toEqual({ collection: 'admin' });
  expect(table.find('/v1/records/records')?.params).toEqual({ collection: 'records' });
});

test('routes: invalid UTF-8 is refused', () => {
  expect(() => table.find('/v1/people/keys/%ff')).toThrow(Refusal);
  expect(() => table.find('/v1/people/keys/%zz')).toThrow('key is not UTF-8');
});
