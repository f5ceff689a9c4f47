/** How each peer stores and processes tasks, with the settings its manual recommends for speed. */
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const concurrency = 64;

export const peers = { bullmq, 'pg-boss': pgBoss, 'graphile-worker': graphileWorker };

async function bullmq(connection, deliver) {
  const { Queue, Worker } = require('bullmq');
  const queue = new Queue('tasks', { connection });
  const retention = { removeOnComplete: true, removeOnFail: false };
  const worker = new Worker('tasks', (job) => deliver(job.data.payload), {
    connection,
    concurrency,
    autorun: false,
  });
  let running;
  return {
    submit: (payload) => queue.add('task', { payload }, retention),
    submitAll: (payloads) =>
      queue.addBulk(
        payloads.map((payload) => ({ name: 'task', data: { payload }, opts: retention })),
      ),
    pause: () => worker.pause(),
    clear: () => queue.drain(),
    resume: async () => {
      if (running) await worker.resume();
      // It ends when the worker is closed.
      running ??= worker.run();
    },
  };
}

async function pgBoss(connection, deliver) {
  const PgBoss = require('pg-boss');
  const boss = new PgBoss({ ...connection, max: 16, supervise: true });
  boss.on('error', (error) => console.error(error.message));
  await boss.start();
  await boss.createQueue('tasks');
  let workers;
  return {
    submit: (payload) => boss.send('tasks', { payload }),
    submitAll: (payloads) =>
      boss.insert(payloads.map((payload) => ({ name: 'tasks', data: { payload } }))),
    pause: async () => {
      if (workers) await boss.offWork('tasks');
      workers = undefined;
    },
    clear: () => boss.purgeQueue('tasks'),
    resume: async () => {
      // Half a second is its minimum poll interval, so batches are large
      // and several workers poll in turn.
      const options = { batchSize: 1_000, pollingIntervalSeconds: 0.5 };
      const work = (jobs) => Promise.all(jobs.map((job) => deliver(job.data.payload)));
      workers ??= await Promise.all([1, 2, 3, 4].map(() => boss.work('tasks', options, work)));
    },
  };
}

async function graphileWorker(connection, deliver) {
  const { makeWorkerUtils, run } = require('graphile-worker');
  const { Pool } = require('pg');
  const pgPool = new Pool({ ...connection, max: 16 });
  const utils = await makeWorkerUtils({ pgPool });
  await utils.migrate();
  let runner;
  return {
    submit: (payload) => utils.addJob('task', { payload }),
    submitAll: (payloads) =>
      utils.addJobs(payloads.map((payload) => ({ identifier: 'task', payload: { payload } }))),
    pause: async () => {
      await runner?.stop();
      runner = undefined;
    },
    clear: () => pgPool.query('delete from graphile_worker._private_jobs'),
    resume: async () => {
      runner ??= await run({
        pgPool,
        concurrency,
        noHandleSignals: true,
        pollInterval: 100,
        // Claims and completions in batches, as its manual says for throughput.
        preset: {
          worker: {
            localQueue: { size: 500 },
            completeJobBatchDelay: 0,
            failJobBatchDelay: 0,
          },
        },
        taskList: { task: ({ payload }) => deliver(payload) },
      });
    },
  };
}
