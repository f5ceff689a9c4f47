import { expect, test } from 'vitest';
import { FakePart } from './fake-part.test-support.js';
import { drainMs, maxQuickExits, steadyMs } from './supervised-part.js';

/** Kills the process and lets the pause before the next start pass. */
async function dieOnce(fake: FakePart): Promise<void> {
  const before = fake.children.length;
  fake.last.die('disk full');
  await expect.poll(() => fake.clock.isAwaited).toBe(true);
  fake.clock.advance(10_000);
  await expect.poll(() => fake.children.length).toBe(before + 1);
}

test('a part that dies is started again, where it was, and both are reported', async () => {
  const fake = new FakePart('queue');
  await fake.supervised.start();
  await dieOnce(fake);
  await expect.poll(() => fake.events).toHaveLength(2);
  expect(fake.events).toMatchObject([
    { kind: 'died', exit: { code: 1, lastWords: 'disk full' }, againMs: 250 },
    { kind: 'back', listeners: [{ url: 'http://127.0.0.1/queue' }] },
  ]);
  expect(fake.before).toEqual([[], [{ listener: 'http', url: 'http://127.0.0.1/queue' }]]);
});

test('the pauses grow, and after too many early exits it is given up with its last words', async () => {
  const fake = new FakePart('queue');
  await fake.supervised.start();
  for (let death = 1; death < maxQuickExits; death++) await dieOnce(fake);
  fake.last.die('disk full', 3);
  await expect(fake.supervised.givenUp).resolves.toMatchObject({
    message: 'the queue exited 5 times in a row within 20s of its start: disk full (exit code 3)',
  });
  const pauses = fake.events.flatMap((event) => (event.kind === 'died' ? [event.againMs] : []));
  expect(pauses).toEqual([250, 1_000, 4_000, 10_000]);
  expect(fake.children).toHaveLength(maxQuickExits);
});

test('whoever lived long enough begins again', async () => {
  const fake = new FakePart('queue');
  await fake.supervised.start();
  for (let death = 1; death < 3 * maxQuickExits; death++) {
    fake.clock.advance(steadyMs);
    await dieOnce(fake);
  }
  const pauses = fake.events.flatMap((event) => (event.kind === 'died' ? [event.againMs] : []));
  expect(new Set(pauses)).toEqual(new Set([250]));
});

test('one that cannot start at all is not tried again', async () => {
  const fake = new FakePart('daemon');
  fake.announces = false;
  const started = fake.supervised.start();
  fake.last.die('127.0.0.1:8765 is already in use', 2);
  await expect(started).rejects.toMatchObject({
    code: 'PART_FAILED',
    detail: 'the daemon did not start: 127.0.0.1:8765 is already in use (exit code 2)',
  });
  expect(fake.children).toHaveLength(1);
});

test('a stop drains it, and nothing is started again', async () => {
  const fake = new FakePart('db');
  await fake.supervised.start();
  await expect(fake.supervised.stop()).resolves.toBeUndefined();
  expect(fake.last.signals).toEqual(['SIGTERM']);
  expect(fake.children).toHaveLength(1);
  expect(fake.clock.isAwaited).toBe(false);
});

test('a stop during the pause after a death starts nothing', async () => {
  const fake = new FakePart('db');
  await fake.supervised.start();
  fake.last.die('disk full');
  await expect.poll(() => fake.clock.isAwaited).toBe(true);
  await expect(fake.supervised.stop()).resolves.toBeUndefined();
  expect(fake.last.signals).toEqual([]);
  expect(fake.children).toHaveLength(1);
});

test('what does not drain in time is killed, and that is reported', async () => {
  const fake = new FakePart('queue');
  fake.drains = false;
  await fake.supervised.start();
  const stopping = fake.supervised.stop();
  await expect.poll(() => fake.clock.isAwaited).toBe(true);
  fake.clock.advance(drainMs);
  await expect(stopping).resolves.toMatchObject({
    message: 'the queue did not stop cleanly: SIGKILL',
  });
});

test('a part that was never started has nothing to stop', async () => {
  await expect(new FakePart('db').supervised.stop()).resolves.toBeUndefined();
});
