import { expect, test } from 'vitest';
import { RecentTasks } from './step.js';
import type { StoredTask } from './task-codec.js';

const task = (id: number) => ({ row: { id: String(id) } }) as StoredTask;
const bytes = Buffer.from('stored');

test('recent tasks: a task is returned once, and only for the bytes it was stored as', () => {
  const recent = new RecentTasks();
  const [first, second] = [task(1), task(2)];
  recent.keep(bytes, first);
  recent.keep(bytes, second);
  expect(recent.take('1', Buffer.from('stored'))).toBe(first);
  expect(recent.take('1', bytes)).toBeUndefined();
  expect(recent.take('2', Buffer.from('changed'))).toBeUndefined();
});

test('recent tasks: the last 4,096 are kept, and never more than 8,192', () => {
  const recent = new RecentTasks();
  const count = 20_000;
  for (let id = 0; id < count; id++) recent.keep(bytes, task(id));
  const found = Array.from({ length: count }, (_, id) => recent.take(String(id), bytes));
  const isFound = found.map((each) => each !== undefined);
  expect(isFound.slice(count - 4_096)).not.toContain(false);
  expect(isFound.filter(Boolean).length).toBeLessThanOrEqual(8_192);
});
