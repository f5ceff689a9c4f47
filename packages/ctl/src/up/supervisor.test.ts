import { expect, test } from 'vitest';
import { FakePart } from './fake-part.test-support.js';
import { runParts, startParts } from './supervisor.js';

const never = new Promise<void>(() => undefined);

function three() {
  const diary: string[] = [];
  const [db, queue, daemon] = (['db', 'queue', 'daemon'] as const).map(
    (name) => new FakePart(name, diary),
  ) as [FakePart, FakePart, FakePart];
  const stages = [[db.supervised, queue.supervised], [daemon.supervised]];
  return { diary, db, queue, daemon, stages, supervised: stages.flat() };
}

test('parts start stage by stage, and those who hand out work stop first', async () => {
  const { diary, stages, supervised } = three();
  expect(await startParts(stages, never)).toBe(true);
  await runParts(supervised, Promise.resolve());
  expect(diary).toEqual([
    'start db',
    'start queue',
    'start daemon',
    'SIGTERM queue',
    'SIGTERM daemon',
    'SIGTERM db',
  ]);
});

test('when one cannot start, the others are stopped again and its reason is reported', async () => {
  const { diary, daemon, stages } = three();
  daemon.announces = false;
  const started = startParts(stages, never);
  await expect.poll(() => daemon.children.length).toBe(1);
  daemon.last.die('port taken');
  await expect(started).rejects.toMatchObject({
    code: 'PART_FAILED',
    detail: 'the daemon did not start: port taken (exit code 1)',
  });
  expect(diary.slice(-2)).toEqual(['SIGTERM queue', 'SIGTERM db']);
});

test('two that cannot start are both told of as such', async () => {
  const { db, queue, stages } = three();
  db.announces = false;
  queue.announces = false;
  queue.drains = false;
  const started = startParts(stages, never);
  await expect.poll(() => queue.children.length).toBe(1);
  db.last.die('one port taken');
  await expect.poll(() => queue.last.signals).toEqual(['SIGTERM']);
  queue.last.die('another port taken');
  await expect(started).rejects.toMatchObject({
    detail:
      'the database did not start: one port taken (exit code 1); ' +
      'the queue did not start: another port taken (exit code 1)',
  });
});

test('whoever stops it during the start does not wait for the rest of it', async () => {
  const { diary, daemon, stages, supervised } = three();
  daemon.announces = false;
  let stop: () => void = () => undefined;
  const stopped = new Promise<void>((resolve) => (stop = resolve));
  const started = startParts(stages, stopped);
  await expect.poll(() => daemon.children.length).toBe(1);
  stop();
  expect(await started).toBe(false);
  await runParts(supervised, stopped);
  expect(diary.at(-1)).toBe('SIGTERM db');
});

test('a part that is given up takes the others down in order', async () => {
  const { diary, queue, stages, supervised } = three();
  await startParts(stages, never);
  const running = runParts(supervised, never);
  running.catch(() => undefined);
  for (let death = 1; death <= 5; death++) {
    const before = queue.children.length;
    queue.last.die('disk full');
    if (death === 5) break;
    await expect.poll(() => queue.clock.isAwaited).toBe(true);
    queue.clock.advance(10_000);
    await expect.poll(() => queue.children.length).toBe(before + 1);
  }
  await expect(running).rejects.toThrow('the queue exited 5 times');
  expect(diary.slice(-2)).toEqual(['SIGTERM daemon', 'SIGTERM db']);
});

test('one that does not stop does not keep the others from stopping', async () => {
  const { diary, queue, stages, supervised } = three();
  queue.drains = false;
  await startParts(stages, never);
  const running = runParts(supervised, Promise.resolve());
  running.catch(() => undefined);
  await expect.poll(() => queue.clock.isAwaited).toBe(true);
  queue.clock.advance(60_000);
  await expect(running).rejects.toThrow('the queue did not stop cleanly: SIGKILL');
  expect(diary.at(-1)).toBe('SIGTERM db');
});
