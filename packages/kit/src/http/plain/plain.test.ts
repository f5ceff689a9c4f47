import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { sampleHandlers, startSample } from '../../../test/http/sample-server.js';
import type { SampleOptions } from '../../../test/http/sample-server.js';
import { systemClock } from '../../clock.js';
import { drainHttp } from '../drain.js';

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).toReversed()) await step();
});

/** A server and a client that counts how often Node's HTTP was asked. */
async function start(options: SampleOptions = {}) {
  const server = await startSample(options);
  undo.push(() => server.close());
  let byNode = 0;
  server.app.fastify.server.prependListener('request', () => byNode++);
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  undo.push(() => socket.destroy());
  const said = { text: '', hasEnded: false };
  socket.setEncoding('utf8').on('data', (part: string) => (said.text += part));
  socket.on('end', () => (said.hasEnded = true)).on('error', () => undefined);
  const answers = () => said.text.match(/HTTP\/1\.1 \d+/g) ?? [];
  return { server, socket, said, answers, byNode: () => byNode };
}

const submit = (handlerRef: string, more = '') => {
  const body = JSON.stringify({ handler_ref: handlerRef });
  return (
    'POST /v1/queues/mail/tasks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\n' +
    `Content-Type: application/json\r\n${more}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  );
};
const ok = 'HTTP/1.1 202';
const patience = { timeout: 20_000 };

/** Sends pieces so far apart that each is a read of its own. */
async function sendApart(socket: Socket, pieces: readonly string[]): Promise<void> {
  socket.setNoDelay(true);
  for (const piece of pieces) {
    socket.write(piece);
    await systemClock.sleep(60);
  }
}

test('plain requests are answered one after the other without Node', async () => {
  const { socket, said, answers, byNode, server } = await start();
  socket.write(submit('one', 'X-Request-Id: mine-1\r\n'));
  await expect.poll(answers, patience).toEqual([ok]);
  expect(said.text).toMatch(/^HTTP\/1\.1 202 Accepted\r\nx-request-id: mine-1\r\n/);
  expect(said.text).toMatch(/\r\ncontent-type: application\/json\r\ncontent-length: \d+\r\nDate: /);
  expect(said.text).toMatch(/ GMT\r\nConnection: keep-alive\r\nKeep-Alive: timeout=72\r\n\r\n\{/);
  socket.write(submit('two'));
  await expect.poll(answers, patience).toEqual([ok, ok]);
  expect(byNode()).toBe(0);
  const lines = server.app.lines.filter(({ message }) => message === 'request');
  expect(lines.map(({ fields }) => fields)).toMatchObject([
    {
      request_id: 'mine-1',
      method: 'POST',
      operation: 'submitTask',
      status: 202,
      principal: 'ada',
    },
    { route: '/v1/queues/{queue}/tasks', status: 202 },
  ]);
});

test('text beyond ASCII has its length in bytes', async () => {
  const { socket, said, answers } = await start();
  const twice = () => {
    socket.write(submit('grün 🌱'));
  };
  twice();
  await expect.poll(answers, patience).toEqual([ok]);
  twice();
  await expect.poll(answers, patience).toEqual([ok, ok]);
  expect(JSON.parse(said.text.split('\r\n\r\n').at(-1)!)).toMatchObject({ id: 'grün 🌱' });
});

test.each([
  ['no token', submit('x').replace('Bearer good', 'Bearer bad'), 401, 'UNAUTHENTICATED'],
  ['no grant', submit('x').replace('Bearer good', 'Bearer poor'), 403, 'FORBIDDEN'],
  ['another type', submit('x').replace('/json', '/xml'), 415, 'UNSUPPORTED_MEDIA_TYPE'],
  ['half a body', submit('x').replace('"}', '" '), 422, 'INVALID_TASK'],
  ['no queue', submit('x').replace('mail', 'missing'), 404, 'QUEUE_NOT_FOUND'],
  ['a bug', submit('bug'), 500, 'INTERNAL'],
])('%s is refused without Node, and the connection goes on', async (_, text, status, code) => {
  const { socket, said, answers, byNode } = await start();
  socket.write(text);
  await expect.poll(answers, patience).toEqual([`HTTP/1.1 ${status}`]);
  expect(said.text).toContain(`"code":"${code}"`);
  expect(said.text).toContain('\r\ncontent-type: application/problem+json\r\n');
  if (status === 401) expect(said.text).toContain('\r\nwww-authenticate: Bearer');
  socket.write(submit('one'));
  await expect.poll(answers, patience).toEqual([`HTTP/1.1 ${status}`, ok]);
  expect(byNode()).toBe(0);
});

test('a request in two pieces is waited for', async () => {
  const { socket, answers, byNode } = await start();
  const text = submit('one');
  await sendApart(socket, [text.slice(0, -5), text.slice(-5)]);
  await expect.poll(answers, patience).toEqual([ok]);
  expect(byNode()).toBe(0);
});

test.each([
  [
    'in three pieces',
    [submit('a').slice(0, -9), submit('a').slice(-9, -3), submit('a').slice(-3)],
    1,
  ],
  ['cut in its head', [submit('a').slice(0, 40), submit('a').slice(40)], 1],
  ['with another behind it', [submit('a') + submit('b')], 2],
  ['with a query', [submit('a').replace('/tasks', '/tasks?')], 1],
  ['of another operation', ['GET /healthz?x HTTP/1.1\r\nHost: x\r\n\r\n' + submit('a')], 2],
])('a request %s goes to Node, and so do all that follow', async (_, pieces, count) => {
  const { socket, answers, byNode } = await start();
  socket.write(submit('before'));
  await expect.poll(answers, patience).toHaveLength(1);
  await sendApart(socket, pieces);
  await expect.poll(answers, patience).toHaveLength(1 + count);
  socket.write(submit('after'));
  await expect.poll(() => answers().at(-1), patience).toBe(ok);
  await expect.poll(answers, patience).toHaveLength(2 + count);
  expect(byNode()).toBe(count + 1);
});

test('what comes while an answer is made waits for it', async () => {
  const order: string[] = [];
  let release: () => void = () => undefined;
  const handlers = sampleHandlers();
  handlers.getTask = async ({ params }) => {
    order.push(params.id);
    if (order.length === 1) await new Promise<void>((resolve) => (release = resolve));
    return { status: 200, body: { op: 'getTask', params } };
  };
  const { socket, said, answers } = await start({ handlers });
  const get = (id: string) =>
    `GET /v1/tasks/${id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\n\r\n`;
  socket.write(get('first'));
  await expect.poll(() => order, patience).toEqual(['first']);
  await sendApart(socket, [get('second')]);
  expect(order).toEqual(['first']);
  release();
  await expect.poll(answers, patience).toHaveLength(2);
  expect(said.text.indexOf('first')).toBeLessThan(said.text.indexOf('second'));
});

test('a client that leaves is noted as gone, and the load is told once', async () => {
  const load = { enter: vi.fn(), leave: vi.fn() };
  let release: () => void = () => undefined;
  let signal: AbortSignal | undefined;
  const handlers = sampleHandlers();
  handlers.getTask = async (call) => {
    ({ signal } = call);
    await new Promise<void>((resolve) => (release = resolve));
    return { status: 200, body: { op: 'getTask', params: call.params } };
  };
  const { socket, server } = await start({ handlers, load });
  socket.write('GET /v1/tasks/a HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\n\r\n');
  await expect.poll(() => signal, patience).toBeDefined();
  socket.destroy();
  await expect.poll(() => signal?.aborted, patience).toBe(true);
  release();
  await expect.poll(() => server.app.lines.at(-1)?.fields['status'], patience).toBe(499);
  expect(load.enter.mock.calls).toEqual([[0]]);
  expect(load.leave.mock.calls).toEqual([[0]]);
});

test('a client that says no more after its request is answered if that is done at once', async () => {
  const { socket, said, answers } = await start();
  socket.end(submit('one'));
  await expect.poll(() => said.hasEnded, patience).toBe(true);
  expect(answers()).toEqual([ok]);
});

test('half a request before the end is refused', async () => {
  const { socket, said, answers } = await start();
  socket.end(submit('one').slice(0, -2));
  await expect.poll(() => said.hasEnded, patience).toBe(true);
  expect(answers()).toEqual(['HTTP/1.1 400']);
});

test('a drain closes idle connections and ends busy ones with their answer', async () => {
  let release: () => void = () => undefined;
  let isAsked = false;
  const handlers = sampleHandlers();
  handlers.getTask = async ({ params }) => {
    isAsked = true;
    await new Promise<void>((resolve) => (release = resolve));
    return { status: 200, body: { op: 'getTask', params } };
  };
  const { socket, said, server } = await start({ handlers });
  const idle = connect(Number(new URL(server.url).port), '127.0.0.1');
  const idleClosed = new Promise((resolve) => idle.on('close', resolve));
  idle.on('error', () => undefined).resume();
  socket.write('GET /v1/tasks/a HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\n\r\n');
  await expect.poll(() => isAsked, patience).toBe(true);
  const drained = drainHttp(server.app, { clock: systemClock, deadlineMs: 30_000 });
  await idleClosed;
  release();
  expect(await drained).toBe(true);
  await expect.poll(() => said.hasEnded, patience).toBe(true);
  expect(said.text).toContain('\r\nConnection: close\r\n\r\n{');
});

test('the rest of a request is waited for shortly, and then by Node', async () => {
  const { server, socket, answers, byNode } = await start();
  let waitsMs: () => number | undefined = () => undefined;
  server.app.fastify.server.on('connection', (one: Socket) => (waitsMs = () => one.timeout));
  // A second longer than clients are told.
  await expect.poll(() => waitsMs(), patience).toBe(73_000);
  const text = submit('one');
  socket.write(text.slice(0, -5));
  await expect.poll(() => waitsMs(), patience).toBe(2_000);
  socket.write(text.slice(-5));
  await expect.poll(answers, patience).toEqual([ok]);
  expect(waitsMs()).toBe(73_000);
  expect(byNode()).toBe(0);
  socket.write(text.slice(0, -5));
  await expect.poll(() => waitsMs(), patience).toBe(0);
  socket.write(text.slice(-5));
  await expect.poll(answers, patience).toEqual([ok, ok]);
  expect(byNode()).toBe(1);
});

test('a connection that says nothing for long is closed', async () => {
  const { socket, said, answers } = await start({ keepAliveTimeoutMs: 300 });
  socket.write(submit('one'));
  await expect.poll(answers, patience).toEqual([ok]);
  await expect.poll(() => said.hasEnded || socket.destroyed, patience).toBe(true);
});
