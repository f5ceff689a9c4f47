/**
 * One side of a contestant as a process of its own, by its own SDK: `submit` keeps 64 submits under
 * way, `work` runs a no-op handler. Commands come as messages; each is answered with a message.
 * Arguments: KIND CONNECTION.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { peers } from '../queue/peers.mjs';

const [kind, connectionText] = process.argv.slice(2);
const connection = JSON.parse(connectionText);
const payload = 'x'.repeat(300);
const submitters = 64;
const batchSize = 500;

let handled = 0;
let latencies = [];
const handle = (text) => {
  handled++;
  const sentAt = Number(/^sent at (\S+)/.exec(text)?.[1]);
  if (sentAt > 0) latencies.push(now() - sentAt);
};

/** Milliseconds on the clock that all processes of the machine share. */
function now() {
  return Number(process.hrtime.bigint()) / 1e6;
}
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
  /** Submits at a steady pace, however long each submit takes. */
  pace: async ({ perSecond, seconds }) => {
    const submits = [];
    const startedAt = now();
    for (let n = 0; n < perSecond * seconds; n++) {
      await sleep(startedAt + (n * 1_000) / perSecond - now());
      submits.push(contestant.submit(`sent at ${now()} ${payload}`));
    }
    await Promise.all(submits);
  },
  latencies: () => {
    const sorted = latencies.toSorted((a, b) => a - b);
    latencies = [];
    return sorted;
  },
  wait: ({ count }) => contestant.wait(count),
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
  const { connectQueue, defineTasks } = await import('@millrace/worker');
  const queue = connectQueue(connection, defineTasks());
  let worker;
  return {
    submit: (value) => queue.submit('bench', 'task', value),
    submitAll: (values) =>
      queue.submitMany(
        values.map((value) => ({ ref: 'task', payload: value })),
        { queue: 'bench' },
      ),
    resume: () => {
      const options = { queue: 'bench', concurrency: 64 };
      worker ??= queue.createWorker(options, { task: (call) => handle(call.payload) });
    },
    /** Leaves that many claims of workers waiting. */
    wait: (count) => {
      for (let n = 0; n < count; n++) {
        const body = { worker: `idle-${n}`, wait_ms: 30_000 };
        queue.call('claimTasks', { path: { queue: 'bench' }, body }).catch(() => {});
      }
    },
    pause: async () => {
      await worker?.stop();
      worker = undefined;
    },
  };
}
