import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open as openDatabase } from '@millrace/engine';
import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { afterAll, expect } from 'vitest';
import { storeProblems } from '../src/storage/embedded/verify.js';
import { openEmbeddedStore } from '../src/storage/embedded/open.js';
import { MemoryStore } from './support/memory-store/index.js';
import type { TaskStore } from '../src/storage/port/task-store.js';
import { testTaskStore } from './task-store-conformance.js';

const memory = {
  open: async () => new MemoryStore(),
  reopen: async (store: TaskStore) => store,
  close: (store: TaskStore) => store.close(),
};
testTaskStore('The memory store', memory, { tags: 'campaign-store' });

const directories = new Map<TaskStore, string>();
const open = async (directory: string) => {
  const store = await openEmbeddedStore(directory, {
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
  });
  directories.set(store, directory);
  return store;
};

testTaskStore('The embedded store', {
  open: () => open(mkdtempSync(join(tmpdir(), 'millrace-queue-'))),
  reopen: async (store) => {
    await store.close();
    return open(directories.get(store)!);
  },
  close: async (store) => {
    await store.close();
    const database = await openDatabase(directories.get(store)!);
    const problems = database.readRows(storeProblems);
    await database.close();
    expect(problems).toEqual([]);
  },
});

afterAll(() => {
  for (const directory of directories.values()) rmSync(directory, { recursive: true, force: true });
});
