/** The processes of a contestant on a database of its own, and what they and it cost. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startServer } from '../engine/engines/postgres-server.mjs';

const { Client } = createRequire(import.meta.url)('pg');
const worker = fileURLToPath(new URL('worker.mjs', import.meta.url));
const batch = 500;
/** Whether a task is left that is not recorded as done. */
const unfinished = {
  millrace: 'SELECT coalesce(sum(pending + in_flight), 0) > 0 AS is_left FROM millrace.ledger',
  'pg-boss': `SELECT EXISTS (SELECT 1 FROM pgboss.job
    WHERE name = 'tasks' AND state < 'completed') AS is_left`,
  'graphile-worker': 'SELECT EXISTS (SELECT 1 FROM graphile_worker._private_jobs) AS is_left',
};

export async function startDatabase(directory) {
  const { connection, stop } = await startServer(directory, {
    // Queues on PostgreSQL live by vacuum.
    autovacuum: 'on',
    autovacuum_naptime: '5s',
    checkpoint_timeout: '5min',
  });
  const pid = Number(
    readFileSync(join(directory, 'data', 'postmaster.pid'), 'utf8').split('\n')[0],
  );
  const { host, user, database } = connection;
  const url = `postgres://${user}@localhost/${database}?host=${encodeURIComponent(host)}`;
  const withClient = async (use) => {
    const client = new Client({ connectionString: url });
    await client.connect();
    try {
      await use(client);
    } finally {
      await client.end();
    }
  };
  return {
    url,
    stop,
    /** What a database in use has: a planner that knows its tables. Not each queue does without. */
    analyze: () => withClient((client) => client.query('ANALYZE')),
    /** Asks until nothing is left. */
    untilNone: (text) =>
      withClient(async (client) => {
        while ((await client.query(text)).rows[0].is_left) await sleep(20);
      }),
    cpuUs: () => treeCpuUs(pid),
  };
}

/** What the process and its children have used, also those that are gone. */
function treeCpuUs(root) {
  let ticks = 0;
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    let text;
    try {
      text = readFileSync(`/proc/${name}/stat`, 'utf8');
    } catch {
      // It ended since the list was read; its parent has its figures.
      continue;
    }
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const [parent, user, system, childUser, childSystem] = [1, 11, 12, 13, 14].map((i) =>
      Number(fields[i]),
    );
    if (Number(name) === root) ticks += user + system + childUser + childSystem;
    else if (parent === root) ticks += user + system;
  }
  return ticks * 10_000;
}

export async function startWorkers(kind, url, { count, loops }) {
  const children = [];
  /** What it says next; fails when it ends instead. */
  const heard = async (child) => {
    const listening = new AbortController();
    const { signal } = listening;
    const ended = once(child, 'exit', { signal }).then(() => {
      throw new Error(`a server of ${kind} ended; what it said is above`);
    });
    const [answer] = await Promise.race([once(child, 'message', { signal }), ended]).finally(() =>
      listening.abort(),
    );
    return answer;
  };
  for (let i = 0; i < count; i++) {
    const child = fork(worker, [kind, url, loops]);
    await heard(child);
    children.push(child);
  }
  const ask = (child, message) => {
    const answer = heard(child);
    child.send(message);
    return answer;
  };
  const askAll = (message) => Promise.all(children.map((child) => ask(child, message)));
  return {
    fill: (total) => askAll({ act: 'fill', count: Math.ceil(total / count), batch }),
    /**
     * Works off `total` tasks: the rate, and the microseconds of CPU for each task on either side. Where
     * those are all, the time ends when the database has every one of them as done: not each queue
     * waits for that before it counts a task.
     */
    workOff: async (database, total, { areAll }) => {
      const cpu = database.cpuUs();
      const start = performance.now();
      await askAll({ act: 'work' });
      let answers = await askAll({ act: 'count' });
      const done = () => answers.reduce((sum, answer) => sum + answer.done, 0);
      while (done() < total) {
        await sleep(20);
        answers = await askAll({ act: 'count' });
      }
      if (areAll) await database.untilNone(unfinished[kind]);
      const seconds = (performance.now() - start) / 1_000;
      if (areAll) answers = await askAll({ act: 'count' });
      const own = answers.reduce((sum, answer) => sum + answer.cpuUs, 0);
      const theirs = database.cpuUs() - cpu;
      const finished = done();
      await askAll({ act: 'rest' });
      return { rate: finished / seconds, ownUs: own / finished, databaseUs: theirs / finished };
    },
    stop: async () => {
      const alive = children.filter((child) => child.connected);
      const ended = alive.map((child) => once(child, 'exit'));
      for (const child of alive) child.send({ act: 'close' });
      await Promise.all(ended);
    },
  };
}
