// A durable queue, a worker and a submit in one file: no server, no configuration.
import { openQueue } from '@millrace/queue';
import { defineTasks } from '@millrace/worker';
import { z } from 'zod';

const tasks = defineTasks({ 'mail.send': z.object({ to: z.string() }) });
const queue = await openQueue({ data: process.argv[2] ?? './data/mail' }, tasks);

queue.createWorker(
  { queue: 'mail', concurrency: 5 },
  {
    'mail.send': async ({ payload, task }) => {
      console.log(`Attempt ${task.attempt}: mail to ${payload.to}`);
    },
  },
);

const { task } = await queue.submitAndWait('mail', 'mail.send', { to: 'ada@example.com' });
console.log(`The task is ${task.status}.`);
await queue.close();
