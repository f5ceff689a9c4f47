import { expect, test } from 'vitest';
import { matchingGroups, type QueueGroup } from './all-groups.js';

const group = (queue: string, error_type: string, count: number, http_status: number | null) =>
  ({ queue, error_type, handler_ref: 'send', http_status, count }) as QueueGroup;

const groups = [
  group('mail', 'HTTP_5XX', 3, 500),
  group('bills', 'HTTP_5XX', 9, 503),
  group('bills', 'EXPIRED', 4, null),
];
const queues = (filter: Parameters<typeof matchingGroups>[1]) =>
  matchingGroups(groups, filter).map(({ queue, count }) => `${queue} ${count}`);

test('matchingGroups: filters over all queues, largest first', () => {
  expect(queues({})).toEqual(['bills 9', 'bills 4', 'mail 3']);
  expect(queues({ error_type: 'HTTP_5XX' })).toEqual(['bills 9', 'mail 3']);
  expect(queues({ error_type: 'HTTP_5XX', http_status: 500 })).toEqual(['mail 3']);
  expect(queues({ handler_ref: 'other' })).toEqual([]);
});
