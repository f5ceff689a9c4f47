import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '@millrace/kit/errors';
import { silentLog } from '@millrace/kit/log';
import { newToken } from '@millrace/kit/tokens';
import { UndoList } from '@millrace/kit/undo-list';
import type { World } from '@millrace/kit/world';
import type { QueueSettings } from './config.js';
import { rehearsedConfig, rehearsedQueue } from './rehearsed-queue.js';
import { startServer, type Foundations } from './server.js';

/** Beyond these, each costs little less than the one before. */
const mostTasks = 200;
const producers = 8;
const loopback = { host: '127.0.0.1', port: 0 };

/**
 * Runs tasks through a whole server of its own, for `warm_up_ms` at most: submitted, stored,
 * claimed, delivered and settled. Code that runs for the first time is many times slower than later,
 * and the first tasks after a start would wait for that, one behind the other. Store, handler,
 * metrics and log of the rehearsal are thrown away. Returns how many tasks it submitted; where it
 * fails, the server starts cold.
 */
export async function rehearse(
  settings: QueueSettings,
  world: World,
  foundations: Foundations,
): Promise<number> {
  const undo = new UndoList();
  let tasks = 0;
  try {
    const data = await mkdtemp(join(tmpdir(), 'millrace-rehearsal-'));
    undo.add(() => rm(data, { recursive: true, force: true }));
    const handlerPort = await startHandler(undo);
    const { token, sha256 } = newToken(world.random);
    const tokensFile = join(data, 'tokens.yaml');
    await writeFile(tokensFile, tokensText(sha256));
    const rehearsed: QueueSettings = {
      ...settings,
      listen: loopback,
      metrics_listen: loopback,
      data,
      storage: 'embedded',
      tokens_file: tokensFile,
      secrets_file: undefined,
      callback_allowlist: [
        { scheme: 'http', host: loopback.host, port: handlerPort, networks: ['127.0.0.0/8'] },
      ],
      drain_timeout_ms: 1_000,
    };
    const config = rehearsedConfig(`http://${loopback.host}:${handlerPort}/`);
    const server = await startServer(
      rehearsed,
      { ...world, log: silentLog },
      { ...foundations, openStore: storeWith(config, foundations) },
    );
    undo.add(() => server.stop());
    const { port } = new URL(server.listeners[0]!.url);
    const endsAt = world.clock.monotonic() + settings.warm_up_ms;
    const mayGoOn = () => world.clock.monotonic() < endsAt && tasks++ < mostTasks;
    const request = submitText(token);
    await Promise.all(
      Array.from({ length: producers }, () => produce(Number(port), request, mayGoOn)),
    );
  } catch (error) {
    world.log.warn({ err: error }, `starts without a rehearsal: ${messageOf(error)}`);
  }
  await undo.run();
  return tasks;
}

function storeWith(
  config: ReturnType<typeof rehearsedConfig>,
  foundations: Foundations,
): Foundations['openStore'] {
  return async (settings, world) => {
    const store = await foundations.openStore(settings, world);
    const now = world.clock.now();
    await store.putQueue({ queue: rehearsedQueue, config, now, by: 'rehearsal' });
    return store;
  };
}

/** What the tasks are delivered to. */
async function startHandler(undo: UndoList): Promise<number> {
  const handler = createServer((request, response) => {
    request.resume();
    response.end();
  });
  undo.add(() => {
    handler.close();
    handler.closeAllConnections();
  });
  await new Promise<void>((resolve, reject) => {
    handler.on('error', reject);
    handler.listen(loopback, resolve);
  });
  return (handler.address() as AddressInfo).port;
}

/** Sends one request after the other, each when the one before is answered. */
function produce(port: number, request: string, mayGoOn: () => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, loopback.host);
    const next = () => {
      if (mayGoOn()) socket.write(request, 'latin1');
      else socket.destroy();
    };
    socket.on('connect', next).on('data', next).on('error', reject);
    socket.on('close', () => resolve());
  });
}

function tokensText(sha256: string): string {
  const grants = `[{queue: ${rehearsedQueue}, role: submitter}]`;
  const id = '{id: rehearsal, principal: rehearsal';
  return `tokens: [${id}, token_sha256: ${sha256}, grants: ${grants}}]\n`;
}

function submitText(token: string): string {
  const payload = Buffer.alloc(300, 'x').toString('base64');
  const body = JSON.stringify({ handler_ref: 'rehearsal', payload });
  return (
    `POST /v1/queues/${rehearsedQueue}/tasks HTTP/1.1\r\nHost: localhost\r\n` +
    `Authorization: Bearer ${token}\r\nContent-Type: application/json\r\n` +
    `Content-Length: ${body.length}\r\n\r\n${body}`
  );
}
