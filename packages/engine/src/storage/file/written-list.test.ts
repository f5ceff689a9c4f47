import { join } from 'node:path';
import { open } from 'lmdb';
import { expect, test } from 'vitest';
import { useScratch } from '../../../test/scratch.test-support.js';
import { cutWrittenList } from './tables.js';

const scratch = useScratch();

interface Note {
  next: Note | null;
}

function openListed() {
  const root = open<Buffer, Buffer>({
    path: join(scratch.directory(), 'store-000001.mdb'),
    keyEncoding: 'binary',
    encoding: 'binary',
  });
  const firsts = new Set<Note>();
  root.on('aftercommit', ({ next }: { next: Note }) => firsts.add(next));
  return { root, firsts };
}

const keyOf = (number: number) => Buffer.from(String(number).padStart(6, '0'));

test('notes of what is written do not lead to those of what is not', async () => {
  const { root, firsts } = openListed();
  cutWrittenList(root);
  for (let i = 0; i < 20; i++) await root.put(keyOf(i), Buffer.from(`value ${i}`));
  await root.flushed;
  const done = [...firsts].slice(0, -2);
  expect(done.length).toBeGreaterThan(10);
  expect(done.filter(({ next }) => next !== null)).toEqual([]);
  await root.close();
});

test('without it they do, so that there is something to cut', async () => {
  const { root, firsts } = openListed();
  for (let i = 0; i < 20; i++) await root.put(keyOf(i), Buffer.from(`value ${i}`));
  await root.flushed;
  const done = [...firsts].slice(0, -2);
  expect(done.length).toBeGreaterThan(10);
  expect(done.filter(({ next }) => next !== null).length).toBeGreaterThan(10);
  await root.close();
});

test('all that is written while other writes are under way is there and was answered', async () => {
  const { root } = openListed();
  cutWrittenList(root);
  const answers: Promise<boolean>[] = [];
  for (let i = 0; i < 3_000; i++) {
    if (i % 7 === 0) {
      answers.push(
        root.batch(() => {
          for (let j = 0; j < 5; j++) void root.put(keyOf(100_000 + i * 5 + j), keyOf(j));
        }),
      );
    }
    answers.push(i % 5 === 4 ? root.remove(keyOf(i - 1)) : root.put(keyOf(i), keyOf(i)));
    if (i % 50 === 0) await answers.at(-1);
    else if (i % 11 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  expect((await Promise.all(answers)).every(Boolean)).toBe(true);
  await root.flushed;
  expect(root.getCount({ end: keyOf(100_000) })).toBe(3_000 - 2 * 600);
  expect(root.getCount({ start: keyOf(100_000) })).toBe(Math.ceil(3_000 / 7) * 5);
  await root.close();
});
