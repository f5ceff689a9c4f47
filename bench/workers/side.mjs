/**
 * One side of a contestant as a process of its own, by its own SDK: `submit` keeps 64 submits under
 * way, `work` runs a no-op handler. Commands come as messages; each is answered with a message.
 * Arguments: KIND CONNECTION.
 */
import { peers } from '../queue/peers.mjs';

const [kind, connectionText] = process.argv.slice(2);
const connection = JSON.parse(connectionText);
const payload = 'x'.repeat(300);
const submitters = 64;
const batchSize = 500;

let handled = 0;
const handle = () => {
  handled++;
};
const contestant = await (kind === 'millrace' ? millrace() : peers[kind](connection, handle));
let isSubmitting = false;
let loops = [];

const commands = {
  start: () => {
    isSubmitting = true;
    loops = Array.from({ length: submitters }, async () => {
      while (isSubmitting) await contestant.submit(payload);
    });
  },
  finish: async () => {
    isSubmitting = false;
    await Promise.all(loops);
  },
  fill: async ({ count }) => {
    for (let left = count; left > 0; left -= batchSize) {
      const size = Math.min(left, batchSize);
      await contestant.submitAll(Array.from({ length: size }, () => payload));
    }
  },
  work: () => contestant.resume(),
  rest: () => contestant.pause(),
  handled: () => handled,
};

const run = async ({ command, ...params }) => commands[command](params);
process.on('message', (message) => {
  run(message).then(
    (value) => process.send({ value }),
    (error) => process.send({ error: error.stack }),
  );
});
process.on('disconnect', () => process.exit());
process.send({ value: 'ready' });

/** The SDK of Millrace in the form of `peers`. */
async function millrace() {
  const { createQueueClient, createWorker, defineTasks } = await import('@millrace/worker');
  const { createQueueClient: apiClient } = await import('@millrace/client');
  const tasks = defineTasks();
  const client = createQueueClient(connection, tasks);
  const api = apiClient(connection);
  const bytes = (value) => Buffer.from(JSON.stringify(value)).toString('base64');
  let worker;
  return {
    submit: (value) => client.submit('bench', 'task', value),
    submitAll: (values) =>
      api.call('submitBatch', {
        path: { queue: 'bench' },
        body: values.map((value) => ({
          handler_ref: 'task',
          payload: bytes(value),
          payload_content_type: 'application/json',
        })),
      }),
    resume: () => {
      const options = { ...connection, queue: 'bench', concurrency: 64 };
      worker ??= createWorker(options, tasks, { task: handle });
    },
    pause: async () => {
      await worker?.stop();
      worker = undefined;
    },
  };
}
