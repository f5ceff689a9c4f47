import { expect, test } from 'vitest';
import { taskFilterIn } from './task-filter.js';

test('taskFilterIn: pending and newest unless the address says otherwise', () => {
  expect(taskFilterIn('')).toEqual({
    filter: { status: ['PENDING'] },
    status: 'PENDING',
    order: 'newest',
  });
  expect(taskFilterIn('status=NOPE&order=nope').status).toBe('PENDING');
});

test('taskFilterIn: reads every field', () => {
  const text = 'status=DEAD&handler_ref=mail&group_key=a&from=2026-01-01T00:00:00Z&order=oldest';
  expect(taskFilterIn(text)).toEqual({
    filter: {
      status: ['DEAD'],
      handler_ref: 'mail',
      group_key: 'a',
      from: '2026-01-01T00:00:00Z',
    },
    status: 'DEAD',
    order: 'oldest',
  });
});

test('taskFilterIn: the order by next attempt is for pending tasks', () => {
  expect(taskFilterIn('order=next').order).toBe('next');
  expect(taskFilterIn('order=next&status=DEAD').order).toBe('newest');
});
