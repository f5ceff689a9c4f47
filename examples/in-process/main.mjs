// A durable queue, a worker and a submit in one file: no server, no configuration.
import { openQueue } from '@millrace/queue';
import { defineTasks } from '@millrace/worker';
import { z } from 'zod';

const tasks = defineTasks({
  'mail.send': { payload: z.object({ to: z.string() }), queue: 'mail' },
});
const queue = await openQueue({ data: process.argv[2] ?? './data/mail' }, tasks);

queue.createWorker(
  { queue: 'mail' },
  { 'mail.send': ({ payload }) => console.log(`Mail to ${payload.to}`) },
);
const { task } = await queue.submitAndWait('mail.send', { to: 'ada@example.com' });
console.log(`The task is ${task.status}.`);
await queue.close();
