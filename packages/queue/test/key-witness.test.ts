import { expect, test } from 'vitest';
import { KeyWitness } from '../simulation/key-witness.js';
import type { TaskStatus } from '../src/core/task.js';
import { someTask } from './task-store/fixture.js';

test.each([
  ['a key that is held is given away', 'PENDING', null, 'stored', 'given away'],
  ['a key that is held for a time is given away', 'IN_FLIGHT', 100, 'stored', 'given away'],
  ['a key is free after its time', 'PENDING', 5, 'stored', undefined],
  ['a key is free when its task has ended', 'DEAD', null, 'stored', undefined],
  ['the holder is returned', 'PENDING', null, 'first', undefined],
  ['a task without the key is returned', 'PENDING', null, 'other', 'without the key'],
] as const)('key witness: %s', (_name, status, until, answer, fault) => {
  const statuses = new Map<string, TaskStatus>([['first', status]]);
  const faults: string[] = [];
  const witness = new KeyWitness(
    (id) => statuses.get(id),
    (holds, message) => void (holds || faults.push(message)),
  );
  const task = (id: string) => someTask({ id, dueAt: 0, uniqueKey: 'k', uniqueUntil: until });
  witness.inserted(task('first'), { kind: 'stored' } as never, 0);
  const result =
    answer === 'stored' ? { kind: answer } : { kind: 'existing', task: { id: answer } };
  witness.inserted(task('second'), result as never, 10);
  expect(faults).toEqual(fault === undefined ? [] : [expect.stringContaining(fault)]);
});
