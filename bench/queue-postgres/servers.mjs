/** The processes of a contestant with their own database, and the CPU time of both. */
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startServer } from '../engine/engines/postgres-server.mjs';
import { startModule } from '../shared/processes.mjs';

const { Client } = createRequire(import.meta.url)('pg');
const worker = fileURLToPath(new URL('worker.mjs', import.meta.url));
const batch = 500;
/** True if some task is not recorded as done. */
const unfinished = {
  millrace: 'SELECT coalesce(sum(pending + in_flight), 0) > 0 AS is_left FROM millrace.counters',
  'pg-boss': `SELECT EXISTS (SELECT 1 FROM pgboss.job
    WHERE name = 'tasks' AND state < 'completed') AS is_left`,
  'graphile-worker': 'SELECT EXISTS (SELECT 1 FROM graphile_worker._private_jobs) AS is_left',
};

export async function startDatabase(directory, changes = {}) {
  const { connection, stop } = await startServer(directory, {
    // Queues on PostgreSQL depend on vacuum.
    autovacuum: 'on',
    autovacuum_naptime: '5s',
    checkpoint_timeout: '5min',
    ...changes,
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
    withClient,
    /** Updates planner statistics, which some queues need. */
    analyze: () => withClient((client) => client.query('ANALYZE')),
    /** Polls until no task is left. */
    untilNone: (text) =>
      withClient(async (client) => {
        while ((await client.query(text)).rows[0].is_left) await sleep(20);
      }),
    cpuUs: () => treeCpuUs(pid),
  };
}

/** CPU time of the process and its children, including exited ones. */
function treeCpuUs(root) {
  let ticks = 0;
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    let text;
    try {
      text = readFileSync(`/proc/${name}/stat`, 'utf8');
    } catch {
      // It exited meanwhile; its parent has its CPU time.
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
  /** The next message of the process; rejects if it exits. */
  const nextMessage = async (child) => {
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
    const child = startModule(worker, [kind, url, loops]);
    await nextMessage(child);
    children.push(child);
  }
  const request = (child, message) => {
    const answer = nextMessage(child);
    child.send(message);
    return answer;
  };
  const requestAll = (message) => Promise.all(children.map((child) => request(child, message)));
  return {
    fill: (total) => requestAll({ act: 'fill', count: Math.ceil(total / count), batch }),
    /**
     * Processes `total` tasks: the rate, and the CPU microseconds per task of both sides. If those are
     * all tasks, the time ends when the database has every one as done: not every queue waits for
     * that before it counts a task. `taken` also has the tasks that were in progress at the end.
     */
    workOff: async (database, total, { areAll }) => {
      const cpu = database.cpuUs();
      const start = performance.now();
      await requestAll({ act: 'work' });
      let answers = await requestAll({ act: 'count' });
      const done = () => answers.reduce((sum, answer) => sum + answer.done, 0);
      while (done() < total) {
        await sleep(20);
        answers = await requestAll({ act: 'count' });
      }
      if (areAll) await database.untilNone(unfinished[kind]);
      const seconds = (performance.now() - start) / 1_000;
      if (areAll) answers = await requestAll({ act: 'count' });
      const own = answers.reduce((sum, answer) => sum + answer.cpuUs, 0);
      const theirs = database.cpuUs() - cpu;
      const finished = done();
      answers = await requestAll({ act: 'rest' });
      return {
        rate: finished / seconds,
        ownUs: own / finished,
        databaseUs: theirs / finished,
        taken: done(),
      };
    },
    stop: async () => {
      const alive = children.filter((child) => child.connected);
      const ended = alive.map((child) => once(child, 'exit'));
      for (const child of alive) child.send({ act: 'close' });
      await Promise.all(ended);
    },
  };
}
