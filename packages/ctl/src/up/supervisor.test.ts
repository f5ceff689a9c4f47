import { expect, test } from 'vitest';
import type { Part } from './parts.js';
import { startParts } from './supervisor.js';

const options = { dataDir: '/nowhere' };
const never = new Promise<void>(() => undefined);

/** Parts that write down what happens to them. */
function makePart(name: string, diary: string[], over: Partial<Part> & FakeRun = {}): Part {
  return {
    name,
    title: name,
    addresses: [],
    available: () => Promise.resolve(true),
    async start() {
      diary.push(`start ${name}`);
      return {
        listeners: [{ listener: 'http', url: `http://127.0.0.1/${name}` }],
        ended: over.ended ?? never,
        async stop() {
          diary.push(`stop ${name}`);
          if (over.stopError) throw over.stopError;
        },
      };
    },
    ...over,
  };
}

interface FakeRun {
  ended?: Promise<void>;
  stopError?: Error;
}

test('parts start in order and stop in the opposite one', async () => {
  const diary: string[] = [];
  const parts = ['db', 'queue'].map((name) => makePart(name, diary));
  const supervised = await startParts(parts, options);
  await supervised.runUntil(Promise.resolve());
  expect(diary).toEqual(['start db', 'start queue', 'stop queue', 'stop db']);
});

test('a part that is not there is named and the others run', async () => {
  const diary: string[] = [];
  const absent = makePart('queue', diary, { available: () => Promise.resolve(false) });
  const supervised = await startParts([makePart('db', diary), absent], options);
  expect(supervised.missing).toEqual([absent]);
  expect([...supervised.running.keys()].map(({ name }) => name)).toEqual(['db']);
});

test('when one part cannot start, those before it are stopped again', async () => {
  const diary: string[] = [];
  const bad = makePart('queue', diary, { start: () => Promise.reject(new Error('port taken')) });
  await expect(startParts([makePart('db', diary), bad], options)).rejects.toMatchObject({
    code: 'PART_FAILED',
    detail: 'the queue did not start: port taken',
  });
  expect(diary).toEqual(['start db', 'stop db']);
});

test('a part that fails while running takes the others down in order', async () => {
  const diary: string[] = [];
  const bad = makePart('db', diary, { ended: Promise.reject(new Error('disk full')) });
  const supervised = await startParts([bad, makePart('queue', diary)], options);
  await expect(supervised.runUntil(never)).rejects.toThrow('the db failed: disk full');
  expect(diary.slice(2)).toEqual(['stop queue', 'stop db']);
});

test('a part that ends by itself is a failure too', async () => {
  const supervised = await startParts([makePart('db', [], { ended: Promise.resolve() })], options);
  await expect(supervised.runUntil(never)).rejects.toThrow('the db ended without being asked to');
});

test('one that does not stop does not keep the others from stopping', async () => {
  const diary: string[] = [];
  const stuck = makePart('queue', diary, { stopError: new Error('still draining') });
  const supervised = await startParts([makePart('db', diary), stuck], options);
  await expect(supervised.runUntil(Promise.resolve())).rejects.toThrow(
    'the queue did not stop cleanly: still draining',
  );
  expect(diary.at(-1)).toBe('stop db');
});
