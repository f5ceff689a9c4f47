/** How each queue stores and processes tasks, with the settings its manual recommends for speed. */
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { queueConfig } from '../shared/stores.mjs';

const require = createRequire(import.meta.url);
const concurrency = 64;
/** Tasks per claim: the maximum of a Millrace server. */
const claimed = 500;
/** Its claims sort the whole backlog, so fewer, larger claims are faster. */
const claimedByPgBoss = 1_000;
const payload = 'x'.repeat(300);

export const contestants = { millrace, 'pg-boss': pgBoss, 'graphile-worker': graphileWorker };

/** The store under the server, with claims and settlements as the server's delivery makes them. */
async function millrace(url, { loops }) {
  const { openStore } = await import('../../packages/queue/dist/index.js');
  const { systemClock: clock } = await import('../../packages/kit/dist/base/clock-and-random.js');
  const { systemRandom: random } = await import('../../packages/kit/dist/base/clock-and-random.js');
  const { silentLog: log } = await import('../../packages/kit/dist/base/log.js');
  const store = await openStore(url, { clock, random, log, dataDirectory: '' });
  await store.putQueue({
    queue: 'tasks',
    config: queueConfig,
    now: clock.now(),
    by: 'bench',
    ifVersion: 0,
  });
  const bytes = Buffer.from(payload);
  const state = { done: 0, isWorking: false, loops: [Promise.resolve()] };
  const newTask = (now) => ({
    id: random.ulid(now),
    queue: 'tasks',
    handlerRef: 'bench',
    payload: bytes,
    payloadContentType: 'text/plain',
    headers: {},
    priority: 4,
    groupKey: null,
    dueAt: now,
    expiresAt: null,
    submittedBy: 'bench',
    maxPending: 0,
  });
  const loop = async () => {
    while (state.isWorking) {
      const now = clock.now();
      const tasks = await store.claimDue({
        queue: 'tasks',
        limit: claimed,
        now,
        nodeId: 'bench',
        leaseExpiresAt: now + 45_000,
        newToken: () => Buffer.from(random.bytes(18)).toString('base64url'),
        maxInFlight: 10_000,
        dispatchPerSecond: 0,
        fifoGroups: false,
      });
      await store.settle(tasks.map((task) => settlement(task, clock.now())));
      state.done += tasks.length;
      if (tasks.length === 0) await clock.sleep(5);
    }
  };
  return {
    get done() {
      return state.done;
    },
    submit: async (count) => {
      const now = clock.now();
      await store.insertTasks(
        Array.from({ length: count }, () => newTask(now)),
        now,
      );
    },
    work: async () => {
      state.isWorking = true;
      state.loops = Array.from({ length: loops }, loop);
    },
    rest: async () => {
      state.isWorking = false;
      await Promise.all(state.loops);
    },
    close: () => store.close(),
  };
}

function settlement({ id, attempt, lease }, now) {
  return {
    id,
    token: lease.token,
    now,
    verdict: { kind: 'succeeded' },
    attempt: {
      attempt,
      redrive: 0,
      startedAt: lease.startedAt,
      endedAt: now,
      durationMs: now - lease.startedAt,
      outcome: 'SUCCEEDED',
      errorType: null,
      message: null,
      httpStatus: 200,
      retryAfterMs: null,
      nextAttemptAt: null,
      responseSnippet: null,
      url: 'http://127.0.0.1/run',
      remoteIp: '127.0.0.1',
      nodeId: lease.nodeId,
      traceId: null,
    },
  };
}

async function pgBoss(connectionString, { loops }) {
  const PgBoss = require('pg-boss');
  const boss = new PgBoss({ connectionString, max: 8, supervise: true });
  boss.on('error', (error) => console.error(error.message));
  await boss.start();
  await boss.createQueue('tasks');
  const state = { done: 0, isWorking: false, loops: [Promise.resolve()] };
  // Its `work` polls at most twice a second and does not report completions: this does the same
  // with its own calls, without the wait.
  const loop = async () => {
    while (state.isWorking) {
      const jobs = await boss.fetch('tasks', { batchSize: claimedByPgBoss });
      if (jobs.length === 0) {
        await sleep(5);
        continue;
      }
      await boss.complete(
        'tasks',
        jobs.map(({ id }) => id),
      );
      state.done += jobs.length;
    }
  };
  return {
    get done() {
      return state.done;
    },
    submit: (count) =>
      boss.insert(Array.from({ length: count }, () => ({ name: 'tasks', data: { payload } }))),
    work: async () => {
      state.isWorking = true;
      state.loops = Array.from({ length: loops }, loop);
    },
    rest: async () => {
      state.isWorking = false;
      await Promise.all(state.loops);
    },
    close: () => boss.stop({ graceful: true, wait: true }),
  };
}

async function graphileWorker(connectionString) {
  const { Logger, makeWorkerUtils, run } = require('graphile-worker');
  // Logging each task would be measured too.
  const logger = new Logger(() => () => undefined);
  const { Pool } = require('pg');
  const pgPool = new Pool({ connectionString, max: 8 });
  const utils = await makeWorkerUtils({ pgPool, logger });
  await utils.migrate();
  const state = { done: 0, runner: undefined };
  return {
    get done() {
      return state.done;
    },
    submit: (count) =>
      utils.addJobs(
        Array.from({ length: count }, () => ({ identifier: 'task', payload: { payload } })),
      ),
    work: async () => {
      state.runner = await run({
        pgPool,
        logger,
        concurrency,
        noHandleSignals: true,
        pollInterval: 100,
        // Claims and completions in batches, as its manual says for throughput.
        preset: {
          worker: {
            localQueue: { size: claimed },
            completeJobBatchDelay: 0,
            failJobBatchDelay: 0,
          },
        },
        taskList: { task: () => void state.done++ },
      });
    },
    rest: () => state.runner.stop(),
    close: async () => {
      await utils.release();
      await pgPool.end();
    },
  };
}
