// The same program on a server, if QUEUE_URL and QUEUE_TOKEN name one, and without one.
import { openQueue } from '@millrace/queue';
import { connectQueue, defineTasks } from '@millrace/worker';
import { z } from 'zod';

const tasks = defineTasks({
  'mail.send': { payload: z.object({ to: z.string() }), queue: 'mail' },
});
const { QUEUE_URL: url, QUEUE_TOKEN: token } = process.env;
const queue = url ? connectQueue({ url, token }, tasks) : await openQueue({ memory: true }, tasks);
const send = ({ payload }) => console.log(`Mail to ${payload.to}`);
queue.createWorker({ queue: 'mail' }, { 'mail.send': send });
const { task } = await queue.submitAndWait('mail.send', { to: 'ada@example.com' });
console.log(`The task is ${task.status}.`);
await queue.close();
