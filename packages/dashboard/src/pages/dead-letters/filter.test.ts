import { expect, test } from 'vitest';
import { filterIn, filterOf, filterText, isOf, paramsOf, withField } from './filter.js';

const group = {
  error_type: 'HTTP_5XX',
  handler_ref: 'mail.send',
  http_status: 500,
  count: 3,
  first_seen: '2026-03-02T09:20:11.204Z',
  last_seen: '2026-03-02T10:02:54.871Z',
  sample_id: '01JD3Z8Q4M7X2N5V9RTBKWCH6E',
};

test('filterOf: uses error type, handler and, where present, HTTP status', () => {
  const filter = { error_type: 'HTTP_5XX', handler_ref: 'mail.send', http_status: 500 };
  expect(filterOf(group)).toEqual(filter);
  expect(isOf(filter, group)).toBe(true);
  expect(isOf({ ...filter, from: '2026-03-02T00:00:00.000Z' }, group)).toBe(false);
  const silent = { ...group, http_status: null };
  expect(filterOf(silent)).toEqual({ error_type: 'HTTP_5XX', handler_ref: 'mail.send' });
  expect(isOf(filter, silent)).toBe(false);
});

test('withField: an empty text removes the field', () => {
  expect(withField({ error_type: 'TIMEOUT' }, 'error_type', '')).toEqual({});
  expect(withField({}, 'http_status', '404')).toEqual({ http_status: 404 });
});

test('filterIn: reads what paramsOf wrote', () => {
  const filter = { error_type: 'HTTP_5XX', http_status: 500, to: '2026-03-02T00:00:00.000Z' };
  expect(filterIn(new URLSearchParams(paramsOf(filter)).toString())).toEqual(filter);
  expect(filterIn('task=1')).toEqual({});
});

test('filterText: describes every field', () => {
  expect(filterText({})).toBe('all dead tasks of the queue');
  expect(filterText(filterOf(group))).toBe(
    'dead tasks with error HTTP_5XX, of handler mail.send, with HTTP status 500',
  );
});
