import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Lifecycle } from '../src/base/lifecycle.js';
import { QueueServer, tokens } from './queue-server.js';
import { ctlHere } from './run-ctl.js';

const server = new QueueServer();
beforeAll(async () => {
  await server.start();
  await server.makeQueue('push');
});
afterAll(() => server.remove());

const soon = { timeout: 60_000, interval: 50 };

async function pullQueue(name: string): Promise<void> {
  await server.makeQueue(name, { callback: { protocol: 'pull' } });
}

/** Runs `ctl queue work` until `stop`. */
function startWork(args: readonly string[]) {
  let stop = () => undefined as void;
  const stopped = new Promise<void>((resolve) => (stop = resolve));
  const lifecycle: Lifecycle = {
    interrupted: new AbortController().signal,
    serve: (work) => work(stopped),
    onInterrupt: () => () => undefined,
    handOver: (work) => work(),
  };
  const ended = server.ctl(['work', ...args], { lifecycle });
  return {
    ended,
    stop: async () => {
      stop();
      return ended;
    },
  };
}

const submit = async (queue: string, payload: string): Promise<string> =>
  (await server.json(['submit', queue, 'mail.send', '--payload', payload])).id;
const taskOf = (id: string) => server.json(['get', id]);
const statusOf = (id: string) => async () => (await taskOf(id)).status;

test('work: runs a command with the payload on stdin and the task in its environment', async () => {
  await pullQueue('letters');
  const file = join(server.folder, 'letters.txt');
  const script = `{ echo "$MILLRACE_TASK_ID $MILLRACE_TASK_HANDLER_REF $MILLRACE_TASK_ATTEMPT"; cat; } > ${file}`;
  const worker = startWork(['letters', '--name', 'w1', '--', script]);
  const id = await submit('letters', '{"to":"ada"}');
  await expect.poll(statusOf(id), soon).toBe('SUCCEEDED');
  expect(readFileSync(file, 'utf8')).toBe(`${id} mail.send 1\n{"to":"ada"}`);
  const { workers } = await server.json(['workers', 'letters']);
  expect(workers).toMatchObject([{ worker: 'w1', claimed: 1, completed: 1, failed: 0 }]);
  expect(await server.ok(['workers', 'letters'])).toMatch(/^WORKER +PRINCIPAL .*\nw1 +root /);
  expect(await worker.stop()).toMatchObject({ code: 0 });
});

test('work: exit code 75 retries the task, any other failure ends it', async () => {
  await pullQueue('parcels');
  const script = 'test "$MILLRACE_TASK_ATTEMPT" = 1 && exit 75; echo broken >&2; exit 3';
  const worker = startWork(['parcels', '--concurrency', '2', '--', 'sh', '-c', script]);
  const id = await submit('parcels', '1');
  await expect.poll(statusOf(id), soon).toBe('DEAD');
  const task = await taskOf(id);
  expect(task).toMatchObject({ dead_reason: 'PERMANENT', attempt: 2 });
  expect(task.attempts[0].message).toBe('The command ended with exit code 75');
  expect(task.last_error.message).toBe('The command ended with exit code 3: broken');
  await worker.stop();
});

test('workers: says so when nobody works', async () => {
  expect(await server.ok(['workers', 'push'])).toContain('No worker of push');
});

test('doctor: names a queue without a worker on the server of MILLRACE_QUEUE_URL', async () => {
  await pullQueue('alone');
  await submit('alone', '{}');
  const env = { HOME: server.folder, MILLRACE_QUEUE_URL: server.url() };
  const doctor = async () =>
    (await ctlHere(['doctor'], { ...env, MILLRACE_QUEUE_TOKEN: tokens.root })).out;
  await expect.poll(doctor, soon).toMatch(/no_worker: tasks are due .* to .*alone/);
});

test('work: reports a queue that cannot be worked at once', async () => {
  const push = await server.ctl(['work', 'push', '--', 'true']);
  expect([push.code, push.err]).toEqual([1, expect.stringContaining('callback.protocol')]);
  expect((await server.ctl(['work', 'nowhere', '--', 'true'])).code).toBe(1);
  expect((await server.ctl(['work', 'push', '--lease', '10ms', '--', 'true'])).code).toBe(2);
  expect((await server.ctl(['work', 'push', '--concurrency', '0', '--', 'true'])).code).toBe(2);
  const env = { MILLRACE_QUEUE_TOKEN: tokens.submitter };
  expect((await server.ctl(['work', 'mail', '--', 'true'], { env })).err).toContain('worker');
});
