import { expect, test } from 'vitest';
import type { Core } from '../core.js';
import { ManualClock } from '../manual-clock.test-support.js';
import { FanOut } from './fan-out.js';

const turn = () => new Promise((resolve) => setImmediate(resolve));

function scene() {
  const clock = new ManualClock();
  let commit = () => {};
  const core = { clock, closed: undefined as Error | undefined, onDurable: listen };
  function listen(run: () => void) {
    commit = run;
    return () => undefined;
  }
  const fanOut = new FanOut(core as unknown as Core);
  return { clock, core, fanOut, commit: () => commit() };
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

test('a long round is followed by as long a rest, after which all is told together', async () => {
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
