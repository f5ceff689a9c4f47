import { resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { faultsOf } from './daemon-server.js';
import { QueueServer, runCtl, tokens, type RunOptions } from './queue-server.js';

const server = new QueueServer();
beforeAll(async () => {
  await server.start();
  await server.makeQueue('agents');
  await server.makeQueue('others');
});
afterAll(() => server.remove());

const submit = (args: readonly string[], options: RunOptions = {}) =>
  runCtl(['agent', 'submit', ...args], {
    ...options,
    env: {
      HOME: server.folder,
      MILLRACE_QUEUE_URL: server.url(),
      MILLRACE_QUEUE_TOKEN: tokens.root,
    },
  });

test('the prompt becomes a task of the queue agents, as the daemon takes it', async () => {
  const flags = '--repo . --backend claude --model opus --branch b --priority 7 --group mill';
  const { code, out } = await submit(['Fix it', ...flags.split(' '), '--json']);
  expect(code).toBe(0);
  const task = JSON.parse(out);
  expect(task).toMatchObject({
    queue: 'agents',
    handler_ref: 'agent',
    payload_content_type: 'application/json',
    priority: 7,
    group_key: 'mill',
  });
  const { payload } = await server.json(['get', task.id]);
  const request = JSON.parse(Buffer.from(payload, 'base64').toString());
  expect(request).toEqual({
    prompt: 'Fix it',
    repo: resolve('.'),
    backend: 'claude',
    model: 'opus',
    branch: 'b',
  });
  expect(faultsOf('SpawnRequest', request)).toEqual([]);
});

test('labels name the machines that may run it', async () => {
  const { out } = await submit(['x', '--label', 'gpu=true', '--label', 'os=linux', '--json']);
  expect(JSON.parse(out)).toMatchObject({ handler_ref: 'agent.gpu:true' });
  const { headers } = await server.json(['get', JSON.parse(out).id]);
  expect(headers).toMatchObject({ 'x-agent-labels': 'gpu=true,os=linux' });
  expect((await submit(['x', '--label', 'gpu'])).err).toContain('--label must be KEY=VALUE');
});

test('it may wait for its time or its end, and goes to another queue by name', async () => {
  const later = JSON.parse((await submit(['x', '--delay', '1h', '--json'])).out);
  expect(Date.parse(later.next_attempt_at)).toBeGreaterThan(Date.parse(later.created_at));
  const waited = await submit(['-', '--queue', 'others', '--wait'], { input: 'From stdin\n' });
  expect(waited).toMatchObject({ code: 0, err: '' });
  expect(waited.out).toMatch(/SUCCEEDED after 1 attempt/);
  const request = JSON.parse(server.received.at(-1)!.body.toString());
  expect(request).toEqual({ prompt: 'From stdin', cwd: resolve('.') });
});

test('a person is reported how to see it again, and a queue that is not there is said to be missing', async () => {
  const { out } = await submit(['x', '--id', '01JD3Z8Q4M7X2N5V9RTBKWCH6E']);
  expect(out).toBe(
    'Submitted 01JD3Z8Q4M7X2N5V9RTBKWCH6E to agents.\n' +
      'Check it with `ctl queue get 01JD3Z8Q4M7X2N5V9RTBKWCH6E`.\n',
  );
  const missing = await submit(['x', '--queue', 'agent']);
  expect(missing.code).toBe(1);
  expect(missing.err).toMatch(/Did you mean agents\?/);
});

test('where nobody has made the queue agents, it is reported who makes it', async () => {
  const bare = new QueueServer();
  await bare.start();
  try {
    const env = { MILLRACE_QUEUE_URL: bare.url(), MILLRACE_QUEUE_TOKEN: tokens.root };
    const { code, err } = await runCtl(['agent', 'submit', 'x'], { env });
    expect([code, err]).toEqual([
      1,
      'ctl: there is no queue "agents" yet. Start `ctl up`, which creates it, or name another ' +
        'queue with --queue.\n',
    ]);
  } finally {
    await bare.remove();
  }
});
