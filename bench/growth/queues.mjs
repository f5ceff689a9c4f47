/** What a task costs in the embedded queue, by the number of queues that the tasks wait in. */
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { claim, settlement } from '../lists/fill-embedded.mjs';
import { costOf, diskMb, ownMemoryMb } from './measure.mjs';
import { queueConfig } from '../shared/stores.mjs';

const batch = 1_000;
const pageSize = 50;
const payload = Buffer.from('x'.repeat(300));

/** A fresh store with `tasks` pending tasks spread over `queues` queues. */
export async function queueCosts(openStore, { dir, queues, tasks, count }) {
  const home = mkdtempSync(join(dir, 'millrace-growth-'));
  const store = await openStore('embedded', home);
  try {
    const names = Array.from({ length: queues }, (_, i) => `queue-${i}`);
    const now = Date.now();
    for (const queue of names) {
      await store.putQueue({ queue, config: queueConfig, now, by: 'bench', ifVersion: 0 });
    }
    let stored = 0;
    const insert = (size) => {
      const at = Date.now();
      const given = Array.from({ length: size }, () => newTask(++stored, at, names));
      return store.insertTasks(given, at);
    };
    while (stored < tasks) await insert(Math.min(batch, tasks - stored));
    const costs = await costsOf(store, { names, insert, count });
    return { queues, ...costs, ownMemoryMb: ownMemoryMb(), diskMb: diskMb(home) };
  } finally {
    await store.close();
    rmSync(home, { recursive: true, force: true });
  }
}

async function costsOf(store, { names, insert, count }) {
  const queueOf = (i) => names[i % names.length];
  const workOne = async (i) => {
    const now = Date.now();
    const claimed = await claim(store, { queue: queueOf(i), limit: 1, now });
    const [outcome] = await store.settle(claimed.map((task) => settlement(task, now)));
    if (claimed.length !== 1 || outcome === undefined) throw new Error('no task was worked off');
  };
  const readPage = async (i) => {
    const filter = { statuses: ['PENDING'] };
    const query = { queue: queueOf(i), filter, order: 'newest', limit: pageSize };
    const { tasks } = await store.listTasks(query);
    if (tasks.length === 0) throw new Error('a page is empty');
  };
  // Not measured: compiles the code.
  await costOf(count, () => insert(1));
  await costOf(count, workOne);
  return {
    submit: await costOf(count, () => insert(1)),
    'claim and settle': await costOf(count, workOne),
    'page of 50': await costOf(Math.ceil(count / 10), readPage),
    counts: await costOf(count, (i) => store.counts(queueOf(i))),
  };
}

function newTask(n, now, names) {
  return {
    id: `01KE6S000000000${String(n).padStart(11, '0')}`,
    queue: names[n % names.length],
    handlerRef: 'common',
    payload,
    payloadContentType: 'text/plain',
    headers: {},
    priority: 0,
    groupKey: null,
    dueAt: now,
    expiresAt: null,
    submittedBy: 'bench',
    maxPending: 0,
  };
}
