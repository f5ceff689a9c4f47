// The same as in-process/main.mjs, against a server: QUEUE_URL and QUEUE_TOKEN name it.
import { connectQueue, defineTasks } from '@millrace/worker';
import { z } from 'zod';

const tasks = defineTasks({
  'mail.send': { payload: z.object({ to: z.string() }), queue: 'mail' },
});
const { QUEUE_URL: url = 'http://127.0.0.1:8081', QUEUE_TOKEN: token } = process.env;
const queue = connectQueue({ url, token }, tasks);

queue.createWorker(
  { queue: 'mail' },
  { 'mail.send': ({ payload }) => console.log(`Mail to ${payload.to}`) },
);
const { task } = await queue.submitAndWait('mail.send', { to: 'ada@example.com' });
console.log(`The task is ${task.status}.`);
await queue.close();
