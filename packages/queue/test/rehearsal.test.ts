import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { memoryLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { foundations } from '../src/server/foundations.js';
import { rehearse } from '../src/server/rehearsal.js';
import type { Foundations } from '../src/server/server.js';
import type { Settlement } from '../src/storage/task-store.js';
import { newDirectory, testSettings } from './support/server.js';

let home: string;
let directory: string;
const settings = () => ({ ...testSettings(directory), warm_up_ms: 10_000 });

beforeEach(() => {
  directory = newDirectory(() => undefined);
  home = mkdtempSync(join(tmpdir(), 'mr-rehearsal-'));
  vi.stubEnv('TMPDIR', home);
});

afterEach(() => {
  vi.unstubAllEnvs();
  for (const each of [home, directory]) rmSync(each, { recursive: true, force: true });
});

test('a rehearsal takes tasks from the submit to the settle, and leaves nothing behind', async () => {
  const log = memoryLog();
  const settlements: Settlement[] = [];
  const openStore: Foundations['openStore'] = async (...opening) => {
    const store = await foundations.openStore(...opening);
    const settle = store.settle.bind(store);
    store.settle = (list) => {
      settlements.push(...list);
      return settle(list);
    };
    return store;
  };
  const world = { clock: systemClock, random: systemRandom, log };
  const tasks = await rehearse(settings(), world, { ...foundations, openStore });
  expect(tasks).toBeGreaterThanOrEqual(200);
  const succeeded = settlements.filter(({ verdict }) => verdict.kind === 'succeeded');
  expect(succeeded.length).toBeGreaterThan(100);
  expect(log.lines).toEqual([]);
  expect(readdirSync(home)).toEqual([]);
}, 60_000);

test('a rehearsal that fails is told of and cleared away, and the server starts all the same', async () => {
  const log = memoryLog();
  const world = { clock: systemClock, random: systemRandom, log };
  const openStore = () => Promise.reject(new Error('no room'));
  expect(await rehearse(settings(), world, { ...foundations, openStore })).toBe(0);
  expect(log.lines).toMatchObject([
    { level: 'warn', message: 'starts without a rehearsal: no room' },
  ]);
  expect(readdirSync(home)).toEqual([]);
});
