/** The runner of the TypeScript SDK; see README.md. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createQueueApi } from '../../packages/client/dist/index.js';
import {
  connectQueue,
  createWorker,
  defineTasks,
  PermanentError,
  RetryLater,
} from '../../packages/worker/dist/index.js';

const { MILLRACE_URL, MILLRACE_TOKEN, MILLRACE_PREFIX, MILLRACE_ONLY, MILLRACE_RESUME } =
  process.env;
const server = { url: MILLRACE_URL, token: MILLRACE_TOKEN };
const api = createQueueApi(server);
const tasks = defineTasks();
const client = connectQueue(server, tasks);

class Flaky extends Error {
  name = 'Flaky';
}

function handlers(onStart) {
  return {
    echo: ({ payload }) => payload,
    nothing: () => undefined,
    flaky: ({ payload, task }) => {
      if (task.attempt <= payload.failures) throw new Flaky('not yet');
      return { attempt: task.attempt };
    },
    later: ({ task }) => {
      if (task.attempt === 1) throw new RetryLater({ afterMs: 50 });
      return 'done';
    },
    permanent: ({ payload }) => {
      throw new PermanentError(payload.message);
    },
    large: () => 'x'.repeat(70_000),
    slow: async ({ payload, task, progress }) => {
      await progress({ percent: 50, message: 'half' });
      await sleep(payload.ms);
      return task.attempt;
    },
    wait: async ({ signal, task }) => {
      onStart(task.id);
      await sleep(30_000, undefined, { signal });
    },
    crash: ({ task }) => {
      if (task.attempt === 1) process.kill(process.pid, 'SIGKILL');
      return 'recovered';
    },
  };
}

function startWorker(queue, onStart = () => {}) {
  const options = { ...server, queue, leaseMs: 1_000, onError: () => {} };
  return createWorker(options, tasks, handlers(onStart));
}

async function submitAll(queue, { tasks: given = [], many }) {
  if (many) {
    const submits = Array.from({ length: many.count }, (_, n) => client.submit(queue, many.ref, n));
    return (await Promise.all(submits)).map(({ id }) => id);
  }
  const ids = [];
  for (const { ref, payload, options = {} } of given) {
    const { delay_ms: delayMs, group_key: groupKey, unique_key: uniqueKey, priority } = options;
    const all = { delayMs, groupKey, uniqueKey, priority };
    const set = Object.entries(all).filter(([, value]) => value !== undefined);
    ids.push((await client.submit(queue, ref, payload, Object.fromEntries(set))).id);
  }
  return ids;
}

async function ended(id) {
  for (;;) {
    const task = await api.call('getTask', { path: { id }, query: { wait_ms: 30_000 } });
    if (task.status !== 'SUCCEEDED' && task.status !== 'DEAD') continue;
    const { status, result, attempt, last_error, dead_reason } = task;
    const error_type = last_error?.error_type ?? null;
    return { status, result: result ?? null, attempt, error_type, dead_reason };
  }
}

async function run(scenario) {
  const queue = `${MILLRACE_PREFIX}-${scenario.name}`;
  const body = { callback: { protocol: 'pull' }, ...scenario.config };
  await api.call('putQueueConfig', { path: { queue }, body });
  const started = deferred();
  const worker = startWorker(queue, started.resolve);
  const ids = await submitAll(queue, scenario);
  if (scenario.then === 'cancel') {
    await api.call('cancelTask', { path: { id: await started.promise }, body: {} });
  }
  const results = [];
  // One after the other: a server bounds the requests that wait.
  for (const id of ids) results.push(await ended(id));
  await worker.stop();
  console.log(JSON.stringify({ name: scenario.name, tasks: results }));
}

function deferred() {
  let resolve;
  const promise = new Promise((done) => (resolve = done));
  return { promise, resolve };
}

async function resume(queue) {
  const worker = startWorker(queue);
  for (;;) {
    const { pending, in_flight } = await api.call('getStats', { path: { queue } });
    if (pending + in_flight === 0) break;
    await sleep(50);
  }
  await worker.stop();
}

for (const scenario of JSON.parse(readFileSync(process.argv[2], 'utf8'))) {
  if (MILLRACE_ONLY ? scenario.name !== MILLRACE_ONLY : scenario.expect_after_crash) continue;
  if (MILLRACE_RESUME) await resume(`${MILLRACE_PREFIX}-${scenario.name}`);
  else await run(scenario);
}
process.exit(0);
