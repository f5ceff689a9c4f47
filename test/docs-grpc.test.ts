import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { createDelivery } from '../packages/queue/src/delivery/index.js';
import { queueV1 } from '../packages/queue/test/support/grpc-handler.js';
import { makeQueue, startTestServer, tokens } from '../packages/queue/test/support/server.js';
import { fencesOf } from './support/markdown.js';

const page = 'docs/how-to/use-the-queue-over-grpc.md';
const root = fileURLToPath(new URL('..', import.meta.url));
const scratch = join(root, '.cache', `docs-grpc-${process.pid}`);
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

test(`${page}: its client, worker and handler run tasks`, async () => {
  mkdirSync(scratch, { recursive: true });
  const file = join(scratch, 'page.mjs');
  const snippets = fencesOf(page).filter(({ language }) => language === 'js');
  writeFileSync(file, snippets.map(({ text }) => text).join('\n'));
  const { connect, submit, work, serveHandler } = await import(pathToFileURL(file).href);
  const networks = ['127.0.0.0/8'];
  const server = await startTestServer({
    createDelivery,
    settings: {
      grpc: { host: '127.0.0.1', port: 0 },
      callback_allowlist: [{ scheme: 'grpc', host: '127.0.0.1', port: '*', networks }],
    },
  });
  const { url } = server.running.listeners.find(({ listener }) => listener === 'grpc')!;
  const proto = join(root, 'packages', 'contract', 'proto');
  const connection = connect(new URL(url).host, tokens.admin, proto);
  onTestFinished(() => connection.client.close());
  const resultOf = async ({ id }: { id: string }) => {
    const path = `/v1/tasks/${id}?wait_ms=20000`;
    return (await server.as('submitter', { path })).body['result'];
  };

  await makeQueue(server, 'mail', { callback: { protocol: 'pull' } });
  const stream = work(connection, (payload: Buffer) => ({ pulled: payload.toString() }));
  expect(await resultOf(await submit(connection, Buffer.from('a')))).toEqual({ pulled: 'a' });
  stream.cancel();

  const run = (_task: unknown, payload: Buffer) => ({ pushed: payload.toString() });
  // A port that was free a moment ago.
  const address = await freeAddress();
  const handler = await serveHandler(queueV1.Handler, run, address);
  onTestFinished(() => handler.forceShutdown());
  const callback = { protocol: 'grpc', url: `grpc://${address}`, keep_result: true };
  await makeQueue(server, 'mail', { callback });
  expect(await resultOf(await submit(connection, Buffer.from('b')))).toEqual({ pushed: 'b' });
});

async function freeAddress(): Promise<string> {
  const { createServer } = await import('node:net');
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return `127.0.0.1:${port}`;
}
