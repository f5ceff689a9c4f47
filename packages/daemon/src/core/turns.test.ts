import { expect, test } from 'vitest';
import { SharedRuns } from './turns.js';

function controlled() {
  const runs: { resolve: (value: number) => void; reject: (error: Error) => void }[] = [];
  const shared = new SharedRuns(
    () => new Promise<number>((resolve, reject) => runs.push({ resolve, reject })),
  );
  return { runs, shared };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('whoever comes during a run gets the next one, and all of them the same', async () => {
  const { runs, shared } = controlled();
  const first = shared.run();
  const later = [shared.run(), shared.run(), shared.run()];
  expect(runs).toHaveLength(1);
  runs[0]!.resolve(1);
  expect(await first).toBe(1);
  await turn();
  expect(runs).toHaveLength(2);
  const evenLater = shared.run();
  runs[1]!.resolve(2);
  expect(await Promise.all(later)).toEqual([2, 2, 2]);
  await turn();
  runs[2]!.resolve(3);
  expect(await evenLater).toBe(3);
  await turn();
  void shared.run();
  expect(runs).toHaveLength(4);
});

test('runs never overlap, also for a caller between two of them', async () => {
  let running = 0;
  let maxRunning = 0;
  const shared = new SharedRuns(async () => {
    maxRunning = Math.max(maxRunning, ++running);
    await turn();
    running--;
  });
  const callers = Array.from({ length: 5 }, async () => {
    for (let each = 0; each < 20; each++) {
      const run = shared.run();
      for (let step = 0; step < each % 7; step++) await Promise.resolve();
      await run;
      void shared.run();
    }
  });
  await Promise.all(callers);
  await shared.run();
  expect(maxRunning).toBe(1);
});

test('a run that fails does not stop the next one', async () => {
  const { runs, shared } = controlled();
  const first = shared.run();
  const second = shared.run();
  runs[0]!.reject(new Error('disk full'));
  await expect(first).rejects.toThrow('disk full');
  await turn();
  runs[1]!.resolve(2);
  expect(await second).toBe(2);
});
