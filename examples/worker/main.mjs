// The same as in-process/main.mjs, against a server: QUEUE_URL and QUEUE_TOKEN name it.
import { createQueueClient, createWorker, defineTasks } from '@millrace/worker';
import { z } from 'zod';

const tasks = defineTasks({ 'mail.send': z.object({ to: z.string() }) });
const server = {
  url: process.env.QUEUE_URL ?? 'http://127.0.0.1:8081',
  token: process.env.QUEUE_TOKEN,
};

const worker = createWorker({ ...server, queue: 'mail', concurrency: 5 }, tasks, {
  'mail.send': async ({ payload, task }) => {
    console.log(`Attempt ${task.attempt}: mail to ${payload.to}`);
  },
});

const queue = createQueueClient(server, tasks);
const { task } = await queue.submitAndWait('mail', 'mail.send', { to: 'ada@example.com' });
console.log(`The task is ${task.status}.`);
await worker.stop();
