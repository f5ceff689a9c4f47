import { expect, test } from 'vitest';
import { isTaskId, searchItems } from './palette-search.js';

const item = (kind: string, title: string, note?: string) => ({
  id: `${kind} ${title}`,
  kind,
  title,
  note,
  run: () => undefined,
});
const items = [
  item('Page', 'Queues'),
  item('Queue', 'mail.send'),
  item('Queue', 'email.digest'),
  item('Agent', 'fix the mailer', 'idle'),
];
const titles = (text: string) => searchItems(items, text).map(({ title }) => title);

test('searchItems: titles that start with the text come first', () => {
  expect(titles('mail')).toEqual(['mail.send', 'email.digest', 'fix the mailer']);
});

test('searchItems: every word must be in kind, title or note', () => {
  expect(titles('queue digest')).toEqual(['email.digest']);
  expect(titles('idle')).toEqual(['fix the mailer']);
  expect(titles('nothing')).toEqual([]);
  expect(titles(' ')).toHaveLength(4);
});

test('isTaskId: a ULID, whatever its case', () => {
  expect(isTaskId(' 01jd3z8q4m7x2n5v9rtbkwch6e ')).toBe(true);
  expect(isTaskId('01JD3Z8Q4M7X2N5V9RTBKWCH6')).toBe(false);
});
