import { expect, test } from 'vitest';
import type { Core } from '../core/core.js';
import { ManualClock } from '../../test/manual-clock.test-support.js';
import { FanOut } from './watch.js';

const turn = () => new Promise((resolve) => setImmediate(resolve));

function scene() {
  const clock = new ManualClock();
  let commit = () => {};
  const core = { clock, closed: undefined as Error | undefined, onDurable: listen };
  function listen(run: () => void) {
    commit = run;
    return () => undefined;
  }
  const ended = { rounds: 0 };
  const fanOut = new FanOut(core as unknown as Core, () => void ended.rounds++);
  return { clock, core, fanOut, ended, commit: () => commit() };
}

test('watches are woken at once while that is quickly done', async () => {
  const { fanOut, commit } = scene();
  let woken = 0;
  const stop = fanOut.add(() => woken++);
  for (let i = 1; i <= 3; i++) {
    commit();
    expect(woken).toBe(i);
    await turn();
  }
  stop();
  commit();
  expect(woken).toBe(3);
});

test('the end of a round is reported when all woken watches have done their work', async () => {
  const { fanOut, ended, commit } = scene();
  let woken = 0;
  fanOut.add(() => void Promise.resolve().then(() => woken++));
  commit();
  expect([woken, ended.rounds]).toEqual([0, 0]);
  await turn();
  expect([woken, ended.rounds]).toEqual([1, 1]);
});

test('a long round is followed by as long a pause, after which all is delivered together', async () => {
  const { clock, fanOut, commit } = scene();
  let woken = 0;
  fanOut.add(() => {
    woken++;
    clock.skip(4);
  });
  commit();
  await turn();
  commit();
  commit();
  expect(woken).toBe(1);
  clock.advance(3);
  expect(woken).toBe(1);
  clock.advance(1);
  expect(woken).toBe(2);
  await turn();
  clock.advance(10);
  commit();
  expect(woken).toBe(3);
});

test('a rest does not keep back that the database is closed', async () => {
  const { clock, core, fanOut, commit } = scene();
  let woken = 0;
  fanOut.add(() => {
    woken++;
    clock.skip(4);
  });
  commit();
  await turn();
  commit();
  core.closed = new Error('closed');
  commit();
  expect(woken).toBe(2);
  clock.advance(100);
  expect(woken).toBe(2);
});

test('a round that is long gives others their turn in between', async () => {
  const { clock, fanOut, commit } = scene();
  const woken: number[] = [];
  for (let n = 0; n < 5; n++) {
    fanOut.add(() => {
      woken.push(n);
      clock.skip(1);
    });
  }
  commit();
  expect(woken).toEqual([0, 1]);
  await turn();
  expect(woken).toEqual([0, 1, 2, 3]);
  await turn();
  expect(woken).toEqual([0, 1, 2, 3, 4]);
});

test('commits in the middle of a round are delivered in a round of their own', async () => {
  const { clock, fanOut, commit } = scene();
  const woken: number[] = [];
  for (let n = 0; n < 3; n++) {
    fanOut.add(() => {
      woken.push(n);
      clock.skip(1);
    });
  }
  commit();
  commit();
  expect(woken).toEqual([0, 1]);
  await turn();
  await turn();
  expect(woken).toEqual([0, 1, 2]);
  clock.advance(3);
  expect(woken).toEqual([0, 1, 2, 0, 1]);
  await turn();
  await turn();
  expect(woken).toEqual([0, 1, 2, 0, 1, 2]);
  clock.advance(100);
  expect(woken).toHaveLength(6);
});

test('the middle of a round does not keep back that the database is closed', async () => {
  const { clock, core, fanOut, commit } = scene();
  const woken: number[] = [];
  for (let n = 0; n < 4; n++) {
    fanOut.add(() => {
      woken.push(n);
      clock.skip(1);
    });
  }
  commit();
  core.closed = new Error('closed');
  commit();
  expect(woken).toEqual([0, 1, 0, 1, 2, 3]);
});
