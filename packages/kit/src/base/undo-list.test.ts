import { expect, test } from 'vitest';
import { UndoList } from './undo-list.js';

test('undo list: runs the steps in reverse order, and each once', async () => {
  const undo = new UndoList();
  const ran: number[] = [];
  for (const number of [1, 2, 3]) undo.add(() => ran.push(number));
  await undo.run();
  await undo.run();
  expect(ran).toEqual([3, 2, 1]);
});

test('undo list: a failing step does not stop the others, and the first failure is thrown', async () => {
  const undo = new UndoList();
  const ran: string[] = [];
  undo.add(() => ran.push('last'));
  undo.add(() => Promise.reject(new Error('second')));
  undo.add(() => {
    throw new Error('first');
  });
  await expect(undo.run()).rejects.toThrow('first');
  expect(ran).toEqual(['last']);
});
