import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { planOf } from './migrate.js';

const url = 'postgres://queue:secret@db.example/queue';

test('tasks go from the data directory to the database', () => {
  const plan = { url, direction: 'in', dataDirectory: resolve('data') };
  expect(planOf({ from: 'embedded', to: url })).toEqual(plan);
});

test('and from the database to the data directory that is named', () => {
  const plan = { url, direction: 'out', dataDirectory: resolve('new') };
  expect(planOf({ from: url, to: 'embedded', data: 'new' })).toEqual(plan);
});

test.each([
  ['embedded', 'embedded'],
  [url, url],
])('from %s to %s is refused', (from, to) => {
  expect(() => planOf({ from, to })).toThrow(/one of --from and --to as embedded/);
});

test('another word is refused without showing it, for it may hold a password', () => {
  const refused = () => planOf({ from: 'embedded', to: 'postgers://u:secret@h/d' });
  expect(refused).toThrow(/--to must be embedded, or a URL/);
  expect(refused).not.toThrow(/secret/);
});
