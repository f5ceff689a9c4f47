import { expect, test } from 'vitest';
import { converterTo } from './output-format.js';

function converted(format: 'yaml' | 'name', ...pieces: string[]): string {
  const converter = converterTo(format);
  return pieces.map((piece) => converter.push(piece)).join('') + converter.end();
}

test('yaml: a document, also written in pieces', () => {
  const yaml = 'queues:\n  - name: mail\n    paused: false\n';
  const json = JSON.stringify({ queues: [{ name: 'mail', paused: false }] }, null, 2);
  expect(converted('yaml', `${json}\n`)).toBe(yaml);
  expect(converted('yaml', json.slice(0, 9), json.slice(9), '\n')).toBe(yaml);
});

test('yaml: several documents are separated', () => {
  expect(converted('yaml', '{"a":1}\n{"a":2}\n', '{"a":3}\n')).toBe('a: 1\n---\na: 2\n---\na: 3\n');
});

test('yaml: text that is no JSON stays as it is', () => {
  expect(converted('yaml', 'Usage: ctl\n')).toBe('Usage: ctl\n');
});

test.each([
  [[{ name: 'mail', summary: {} }, { name: 'images' }], 'mail\nimages\n'],
  [{ sessions: [{ id: '01K', name: 'docs' }], next: null }, '01K\n'],
  [{ job: { id: '01K', status: 'done' } }, '01K\n'],
  [{ records: [{ seq: 7, action: 'purge' }] }, '7\n'],
  [{ seq: 7, node_id: '01N', followers: [], collections: [{ name: 'a' }] }, '01N\n'],
  [{ id: 'T1', attempts: [{ id: 'x' }] }, 'T1\n'],
  [{ tasks: [] }, ''],
  [['people', 'parts'], 'people\nparts\n'],
])('name: %j', (value, names) => {
  expect(converted('name', JSON.stringify(value))).toBe(names);
});

test('name: refuses what has no name', () => {
  expect(() => converted('name', '{"ok":true}')).toThrow('-o name works with lists');
});
