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
  StepFailed,
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

/** Handlers that use steps. */
function flowHandlers() {
  let tries = 0;
  return {
    flow: async ({ payload, step, task: { queue } }) => {
      const doubled = await step.run('double', () => payload * 2);
      await step.sleep('nap', 50);
      const signal = await step.signal('go');
      const late = (await step.signal('never', { timeout: 50 })) ?? null;
      const child = await step.submit('child', queue, 'echo', payload + 21);
      const children = await step.submitMany('children', queue, 'echo', [1, 2, 3]);
      const failOnce = () => {
        if (++tries === 1) throw new Flaky('not yet');
        return tries;
      };
      const backoff = { kind: 'fixed', ms: 10 };
      return {
        doubled,
        signal,
        late,
        child,
        children,
        tries: await step.run('flaky', failOnce, { backoff }),
      };
    },
    undo: async ({ step, task: { queue } }) => {
      try {
        await step.submit('child', queue, 'permanent', { message: 'no' });
      } catch (error) {
        if (error instanceof StepFailed) return error.errorType;
        throw error;
      }
      return 'done';
    },
    twice: async ({ step }) => {
      await step.run('a', () => 1);
      await step.run('a', () => 1);
    },
    'crash-flow': async ({ step, task: { attempt } }) => {
      const first = await step.run('first', () => attempt);
      if (attempt === 1) process.kill(process.pid, 'SIGKILL');
      return { first, second: await step.run('second', () => attempt) };
    },
  };
}

function startWorker(queue, { lease_ms: leaseMs = 30_000 }, onStart = () => {}) {
  const options = { ...server, queue, leaseMs, onError: () => {} };
  return createWorker(options, tasks, { ...handlers(onStart), ...flowHandlers() });
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
  const worker = startWorker(queue, scenario, started.resolve);
  const ids = await submitAll(queue, scenario);
  if (scenario.then === 'cancel') {
    await api.call('cancelTask', { path: { id: await started.promise }, body: {} });
  }
  if (scenario.then === 'signal') await client.signal(ids[0], 'go', { by: 'ada' });
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

async function resume(scenario) {
  const queue = `${MILLRACE_PREFIX}-${scenario.name}`;
  const worker = startWorker(queue, scenario);
  for (;;) {
    const { pending, in_flight } = await api.call('getStats', { path: { queue } });
    if (pending + in_flight === 0) break;
    await sleep(50);
  }
  await worker.stop();
}

for (const scenario of JSON.parse(readFileSync(process.argv[2], 'utf8'))) {
  if (MILLRACE_ONLY ? scenario.name !== MILLRACE_ONLY : scenario.expect_after_crash) continue;
  if (MILLRACE_RESUME) await resume(scenario);
  else await run(scenario);
}
process.exit(0);
