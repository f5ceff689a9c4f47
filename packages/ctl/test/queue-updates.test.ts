import { afterAll, beforeAll, expect, test } from 'vitest';
import { ctlHere as ctl, startCtl } from './run-ctl.js';
import { QueueServer, tokens } from './queue-server.js';

const server = new QueueServer();
beforeAll(async () => {
  await server.start();
  await server.ok(['create', 'letters', '--pull']);
});
afterAll(() => server.remove());

test('submit: takes the options of a task', async () => {
  const retries = ['--max-attempts', '3', '--backoff', 'fixed:30s'];
  const times = ['--attempt-timeout', '5s', '--retain', '1h'];
  const labels = ['--label', 'gpu', '--label', 'eu', '--unique-key', 'k', '--debounce', '1m'];
  const task = await server.json(
    ['submit', 'letters', 'write', '--payload', 'x'].concat(retries, times, labels),
  );
  expect(task).toMatchObject({
    max_attempts: 3,
    backoff: { kind: 'fixed', ms: 30_000 },
    timeout_ms: 5_000,
    retain_ms: 3_600_000,
    labels: ['gpu', 'eu'],
  });
  const bad = await server.ctl(['submit', 'letters', 'write', '--backoff', 'never']);
  expect([bad.code, bad.err]).toEqual([2, expect.stringContaining('fixed:30s')]);
});

test('update: changes a pending task', async () => {
  const { id } = await server.json(['submit', 'letters', 'write', '--delay', '1h']);
  const said = await server.ok([
    'update',
    id,
    '--priority',
    '9',
    '--payload',
    'new',
    '--delay',
    '2h',
  ]);
  expect(said).toBe('Changed: 1 task.\n');
  expect(await server.json(['get', id])).toMatchObject({ priority: 9, payload: 'bmV3' });
  expect((await server.ctl(['update', id])).code).toBe(2);
  await server.ok(['cancel', id]);
  const late = await server.ctl(['update', id, '--priority', '1']);
  expect([late.code, late.err]).toEqual([1, expect.stringContaining('only a PENDING task')]);
});

test('create: the old meaning of --url still works, with a message', async () => {
  const made = await server.ctl(['create', 'parcels', '--url', server.handlerUrl]);
  expect([made.code, made.err]).toEqual([0, expect.stringContaining('use --callback-url')]);
});

test('--data and MILLRACE_DATA find a server that `queue serve` runs', async () => {
  const file = server.write(
    'own.yaml',
    'listen: 127.0.0.1:0\nmetrics_listen: 127.0.0.1:0\ndata: ./own\ntokens_file: tokens.yaml\n',
  );
  const { child, ended, says } = startCtl(['queue', 'serve', '--config', file]);
  let out = '';
  child.stdout!.on('data', (text: string) => (out += text));
  const data = file.replace(/own\.yaml$/, 'own');
  const token = { MILLRACE_QUEUE_TOKEN: tokens.root };
  const list = (args: string[], env: Record<string, string>) =>
    ctl(['queue', 'list', '--json', ...args], { ...token, ...env });
  try {
    await says('"listener":"metrics"');
    await expect.poll(async () => (await list(['--data', data], {})).code).toBe(0);
    expect((await list([], { MILLRACE_DATA: data })).out.trim()).toBe('[]');
    expect((await list(['--data', `${data}-not`], {})).code).toBe(1);
  } finally {
    child.kill('SIGTERM');
    await ended;
  }
  expect(out).toContain('"listener":"http"');
  expect((await list(['--data', data], {})).err).toContain('no queue is running');
});
