// A worker of flows as a process of its own: prints a line for every step that it runs.
// usage: flow-worker.mjs URL TOKEN NAME LEASE_MS MAX_RUN_MS
import { systemClock } from '@millrace/kit/clock';
import { systemRandom } from '@millrace/kit/random';
import { connectQueue, defineTasks } from '@millrace/worker';

const [url, token, name, leaseMs, maxRunMs] = process.argv.slice(2);
const queue = connectQueue({ url, token }, defineTasks());

/** Its result is another one in every run, so that a step that is recorded twice is found. */
async function effect(id, step) {
  process.stdout.write(`${JSON.stringify({ id, step })}\n`);
  await systemClock.sleep(systemRandom.integer(0, Number(maxRunMs)));
  return systemRandom.ulid(systemClock.now());
}

const options = { queue: 'crash', name, concurrency: 20, leaseMs: Number(leaseMs) };
queue.createWorker(
  { ...options, onError: () => undefined },
  {
    flow: async ({ step, task: { id } }) => {
      const first = await step.run('first', () => effect(id, 'first'));
      await step.sleep('rest', 20);
      const [answer, many] = await Promise.all([
        step.signal('go', { timeout: '1 hour' }),
        step.submitMany('many', 'crash', 'child', [1, 2, 3]),
      ]);
      const last = await step.run('last', () => effect(id, 'last'));
      return { first, answer, many, last };
    },
    child: ({ payload }) => payload * 2,
    dependent: ({ dependencies }) => dependencies.map(({ status, result }) => ({ status, result })),
  },
);
