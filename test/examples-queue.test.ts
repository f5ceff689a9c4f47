import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Webhook } from 'standardwebhooks';
import { expect, onTestFinished, test } from 'vitest';
import { createDelivery } from '../packages/queue/src/delivery/index.js';
import { serverDependencies } from '../packages/queue/src/server/serve.js';
import {
  makeQueue,
  newEmbeddedStore,
  startTestServer,
  tokens,
} from '../packages/queue/test/support/server.js';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const example = (path: string) => join(root, 'examples', path);
/** That of `mail-signing` in the test server. */
const secret = `whsec_${'A'.repeat(32)}`;
const soon = { timeout: 60_000, interval: 50 };
const printed = 'Mail to ada@example.com\nThe task is SUCCEEDED.\n';

/** test/docs-repository.test.ts runs one example as its page does. */
const tags = { tags: 'campaign-docs' };

test('in-process: runs a task without a server, in 20 lines', tags, () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-example-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const program = example('in-process/main.mjs');
  const run = () =>
    spawnSync(process.execPath, [program, join(folder, 'data')], { encoding: 'utf8' });
  expect(run()).toMatchObject({ stdout: printed, stderr: '', status: 0 });
  expect(run()).toMatchObject({ stdout: printed, status: 0 });
  expect(readFileSync(program, 'utf8').trimEnd().split('\n').length).toBeLessThanOrEqual(20);
});

test('worker: the same 15 lines run a task of a server, and without one', async () => {
  const server = await startTestServer({ store: await newEmbeddedStore(), createDelivery });
  await makeQueue(server, 'mail', { callback: { protocol: 'pull' } });
  const env = { ...process.env, QUEUE_URL: server.url, QUEUE_TOKEN: tokens.admin };
  const child = spawn(process.execPath, [example('worker/main.mjs')], { env });
  let [out, errors] = ['', ''];
  child.stdout.on('data', (bytes: Buffer) => (out += bytes.toString()));
  child.stderr.on('data', (bytes: Buffer) => (errors += bytes.toString()));
  const status = await new Promise((ended) => child.on('close', ended));
  expect([out, errors, status]).toEqual([printed, '', 0]);
  const program = example('worker/main.mjs');
  const alone = spawnSync(process.execPath, [program], { encoding: 'utf8' });
  expect(alone).toMatchObject({ stdout: printed, stderr: '', status: 0 });
  expect(readFileSync(program, 'utf8').trimEnd().split('\n').length).toBeLessThanOrEqual(15);
});

test('handler-express: handles the callbacks of a queue', () => handlesCallbacks('express'));
test('handler-hono: handles the callbacks of a queue', tags, () => handlesCallbacks('hono'));

async function handlesCallbacks(name: string): Promise<void> {
  const env = { ...process.env, QUEUE_SECRET: secret, PORT: '0' };
  const child = spawn(process.execPath, [example(`handler-${name}/main.mjs`)], { env });
  onTestFinished(() => void child.kill('SIGKILL'));
  let out = '';
  child.stdout.on('data', (bytes: Buffer) => (out += bytes.toString()));
  await expect.poll(() => out, soon).toMatch(/^http:.*\n/);
  const store = await newEmbeddedStore();
  const server = await startTestServer({
    store,
    createDelivery: serverDependencies.createDelivery,
  });
  const url = out.trim();
  const signing = { secret_refs: ['mail-signing'] };
  await makeQueue(server, 'mail', { callback: { url, signing } });
  const payload = btoa(JSON.stringify({ to: 'ada@example.com' }));
  const submitted = await server.as('root', {
    method: 'POST',
    path: '/v1/queues/mail/tasks',
    body: { handler_ref: 'mail.send', payload, payload_content_type: 'application/json' },
  });
  const path = `/v1/tasks/${String(submitted.body['id'])}`;
  const status = async () => (await server.as('root', { path })).body['status'];
  await expect.poll(status, soon).toBe('SUCCEEDED');
  expect(out).toContain('Mail to ada@example.com');
}

test('nextjs-route: handles a signed request', tags, async () => {
  process.env['QUEUE_SECRET'] = secret;
  onTestFinished(() => void delete process.env['QUEUE_SECRET']);
  const { POST } = (await import(example('nextjs-route/app/api/queue/route.mjs'))) as {
    POST: (request: Request) => Promise<Response>;
  };
  const body = JSON.stringify({ to: 'ada@example.com' });
  const [id, now] = ['01JD3Z8Q4M7X2N5V9RTBKWCH6E', new Date()];
  const headers = {
    'content-type': 'application/json',
    'x-queue-task-id': id,
    'x-queue-name': 'mail',
    'x-queue-handler-ref': 'mail.send',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign(id, now, body),
  };
  const request = () =>
    new Request('https://app.example/api/queue', { method: 'POST', headers, body });
  expect((await POST(request())).status).toBe(204);
  headers['webhook-id'] = '01JD3Z8Q4M7X2N5V9RTBKWCH6F';
  expect((await POST(request())).status).toBe(401);
});
