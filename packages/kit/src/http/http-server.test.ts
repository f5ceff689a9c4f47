import { connect } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { sampleHandlers, startSample } from '../../test/http/sample-server.js';
import type { SampleOptions } from '../../test/http/sample-server.js';
import { systemClock, systemRandom } from '../base/clock-and-random.js';
import { silentLog } from '../base/log.js';
import { PeerMemory, peerMemoryLimits } from '../base/limits.js';
import { drainHttp } from './run-server.js';

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).toReversed()) await step();
});

const patience = { timeout: 60_000 };

function client(url: string) {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  undo.push(() => socket.destroy());
  const said = { text: '', hasEnded: false };
  socket.setEncoding('utf8').on('data', (part: string) => (said.text += part));
  socket.on('close', () => (said.hasEnded = true)).on('error', () => undefined);
  const answers = () => said.text.match(/HTTP\/1\.1 \d+/g) ?? [];
  return { socket, said, answers };
}

async function start(options: SampleOptions = {}) {
  const server = await startSample(options);
  undo.push(() => server.close());
  return { server, ...client(server.url) };
}

const good = 'Authorization: Bearer good\r\n';
const head = (path: string, more: string, token = good) =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\n${token}Content-Type: application/json\r\n${more}\r\n`;

const submit = (handlerRef: string, more = '') => {
  const body = JSON.stringify({ handler_ref: handlerRef });
  const length = `Content-Length: ${Buffer.byteLength(body)}\r\n`;
  return head('/v1/queues/mail/tasks', more + length) + body;
};
const ok = 'HTTP/1.1 202';

/** A memory budget of `connectionBytes` for one connection and four times that for all. */
const memoryOf = (connectionBytes: number) => new PeerMemory(peerMemoryLimits(connectionBytes * 4));

/** A handler that waits until it is released. */
function slowHandlers() {
  const handlers = sampleHandlers();
  const state = { received: [] as string[], release: () => {}, signal: undefined as unknown };
  handlers.getTask = async ({ params, signal }) => {
    state.received.push(params.id);
    state.signal = signal;
    if (state.received.length === 1) await new Promise<void>((done) => (state.release = done));
    return { status: 200, body: { op: 'getTask', params } };
  };
  return { handlers, state };
}
const getTask = (id: string) => `GET /v1/tasks/${id} HTTP/1.1\r\nHost: x\r\n${good}\r\n`;

test('keepalive: requests are answered one after the other on one connection', async () => {
  const { socket, said, answers, server } = await start();
  socket.write(submit('one', 'X-Request-Id: mine-1\r\n'));
  await expect.poll(answers, patience).toEqual([ok]);
  expect(said.text).toMatch(/^HTTP\/1\.1 202 Accepted\r\nx-request-id: mine-1\r\n/);
  expect(said.text).toMatch(/\r\ncontent-type: application\/json\r\ncontent-length: \d+\r\n/);
  expect(said.text).toMatch(/ GMT\r\nConnection: keep-alive\r\nKeep-Alive: timeout=72\r\n\r\n\{/);
  socket.write(submit('two'));
  await expect.poll(answers, patience).toEqual([ok, ok]);
  const lines = () => server.app.lines.filter(({ message }) => message === 'request');
  await expect.poll(lines, patience).toHaveLength(2);
  expect(lines()[0]!.fields).toMatchObject({
    request_id: 'mine-1',
    method: 'POST',
    operation: 'submitTask',
    route: '/v1/queues/{queue}/tasks',
    status: 202,
    principal: 'ada',
  });
});

test.each([
  ['no token', submit('x').replace('Bearer good', 'Bearer bad'), 401, 'UNAUTHENTICATED'],
  ['no grant', submit('x').replace('Bearer good', 'Bearer poor'), 403, 'FORBIDDEN'],
  ['another type', submit('x').replace('/json', '/xml'), 415, 'UNSUPPORTED_MEDIA_TYPE'],
  ['half a body', submit('x').replace('"}', '" '), 422, 'INVALID_TASK'],
  ['no queue', submit('x').replace('mail', 'missing'), 404, 'QUEUE_NOT_FOUND'],
  ['a bug', submit('bug'), 500, 'INTERNAL'],
])('%s is refused, and the connection goes on', async (_, text, status, code) => {
  const { socket, said, answers } = await start();
  socket.write(text);
  await expect.poll(answers, patience).toEqual([`HTTP/1.1 ${status}`]);
  expect(said.text).toContain(`"code":"${code}"`);
  expect(said.text).toContain('\r\ncontent-type: application/problem+json\r\n');
  if (status === 401) expect(said.text).toContain('\r\nwww-authenticate: Bearer');
  socket.write(submit('one'));
  await expect.poll(answers, patience).toEqual([`HTTP/1.1 ${status}`, ok]);
});

test('text beyond ASCII has its length in bytes', async () => {
  const { socket, said, answers } = await start();
  socket.write(submit('grün 🌱'));
  await expect.poll(answers, patience).toEqual([ok]);
  expect(JSON.parse(said.text.split('\r\n\r\n').at(-1)!)).toMatchObject({ id: 'grün 🌱' });
});

test('pipelining: responses keep the order of the requests', async () => {
  const { handlers, state } = slowHandlers();
  const { socket, said, answers } = await start({ handlers });
  socket.write(getTask('first') + getTask('second'));
  await expect.poll(() => state.received.includes('first'), patience).toBe(true);
  state.release();
  await expect.poll(answers, patience).toHaveLength(2);
  expect(said.text.indexOf('first')).toBeLessThan(said.text.indexOf('second'));
});

test('a client that disconnects is logged with status 499, and its load ends once', async () => {
  const load = { enter: vi.fn(), leave: vi.fn() };
  const { handlers, state } = slowHandlers();
  const { socket, server } = await start({ handlers, load });
  socket.write(getTask('a'));
  await expect.poll(() => state.signal, patience).toBeDefined();
  socket.destroy();
  await expect.poll(() => (state.signal as AbortSignal).aborted, patience).toBe(true);
  state.release();
  await expect.poll(() => server.app.lines.at(-1)?.fields['status'], patience).toBe(499);
  expect(load.enter.mock.calls).toEqual([[0]]);
  expect(load.leave.mock.calls).toEqual([[0]]);
});

test('half a request before the end is 400', async () => {
  const { socket, said, answers } = await start();
  socket.end(submit('one').slice(0, -2));
  await expect.poll(() => said.hasEnded, patience).toBe(true);
  expect(answers()).toEqual(['HTTP/1.1 400']);
});

test('two Host headers are 400', async () => {
  const { socket, said, answers } = await start();
  socket.write('GET /healthz HTTP/1.1\r\nHost: a\r\nhost: b\r\nConnection: close\r\n\r\n');
  await expect.poll(() => said.hasEnded, patience).toBe(true);
  expect(answers()).toEqual(['HTTP/1.1 400']);
  expect(said.text).toContain('more than one Host header');
});

test('drain: closes connections that never sent anything', async () => {
  const { handlers, state } = slowHandlers();
  const { socket, said, server } = await start({ handlers });
  const silent = client(server.url);
  socket.write(getTask('a'));
  await expect.poll(() => state.received.length, patience).toBe(1);
  const drained = drainHttp(server.app, { clock: systemClock, deadlineMs: 30_000 });
  await expect.poll(() => silent.said.hasEnded, patience).toBe(true);
  state.release();
  expect(await drained).toBe(true);
  await expect.poll(() => said.hasEnded, patience).toBe(true);
  expect(said.text).toMatch(/\r\nconnection: close\r\n/i);
});

test('connections: a stranger above the maximum is closed, and health is answered', async () => {
  const { socket, answers, server } = await start({ maxConnections: 1 });
  socket.write(submit('one'));
  await expect.poll(answers, patience).toEqual([ok]);
  const [second, third] = [client(server.url), client(server.url)];
  await expect.poll(() => second.said.hasEnded, patience).toBe(true);
  expect(second.answers()).toEqual([]);
  third.socket.write(head('/none', ''));
  await expect.poll(third.answers, patience).toEqual(['HTTP/1.1 404']);
});

test('connections: 503 while all are in use, and an idle one makes room', async () => {
  const { handlers, state } = slowHandlers();
  const { socket, answers, server } = await start({ maxConnections: 1, handlers });
  socket.write(getTask('one'));
  await expect.poll(() => state.received, patience).toEqual(['one']);
  const second = client(server.url);
  second.socket.write(submit('two'));
  await expect.poll(() => second.said.hasEnded, patience).toBe(true);
  expect(second.answers()).toEqual(['HTTP/1.1 503']);
  expect(second.said.text).toMatch(/\r\nretry-after: 1\r\n/i);
  expect(second.said.text).toContain('max_connections');
  state.release();
  await expect.poll(answers, patience).toEqual(['HTTP/1.1 200']);
  const third = client(server.url);
  third.socket.write(submit('three'));
  await expect.poll(third.answers, patience).toEqual([ok]);
});

test('memory: a body is not buffered before authentication', async () => {
  const peerMemory = memoryOf(1_000_000);
  const { socket, answers } = await start({ peerMemory });
  const token = 'Authorization: Bearer bad\r\n';
  socket.write(head('/v1/queues/mail/tasks', 'Content-Length: 2000\r\n', token));
  socket.write('x'.repeat(1500));
  await expect.poll(answers, patience).toEqual(['HTTP/1.1 401']);
  expect(peerMemory.heldBytes).toBe(0);
});

test('memory: unfinished bodies are counted, and refused beyond the limit', async () => {
  const peerMemory = memoryOf(2_000);
  const { server, socket } = await start({ peerMemory, httpErrorCodes: { overloaded: 'BUSY' } });
  const begin = head('/v1/queues/mail/tasks', 'Content-Length: 2000\r\n');
  socket.write(begin + 'x'.repeat(1_200));
  await expect.poll(() => peerMemory.heldBytes, patience).toBeGreaterThan(1_200);
  const others = Array.from({ length: 8 }, () => client(server.url));
  for (const other of others) other.socket.write(begin + 'x'.repeat(1_200));
  const refused = () => others.filter(({ said }) => said.text.includes('"code":"BUSY"')).length;
  await expect.poll(refused, patience).toBeGreaterThanOrEqual(4);
  expect(peerMemory.heldBytes).toBeLessThanOrEqual(8_000);
  const answer = others.find(({ said }) => said.text !== '')!.said.text;
  expect(answer).toMatch(/^HTTP\/1\.1 503 [^]*\r\nretry-after: 1\r\n/);
  for (const { socket: each } of [...others, { socket }]) each.destroy();
  await expect.poll(() => peerMemory.heldBytes, patience).toBe(0);
});

/** A server whose answers are `bytes` long. */
function largeAnswers(bytes: number) {
  const handlers = sampleHandlers();
  handlers.getTask = () => ({ status: 200, body: { text: 'x'.repeat(bytes) } });
  return handlers;
}

test('memory: unsent responses are counted until they are taken', async () => {
  const peerMemory = memoryOf(64 * 2 ** 20);
  const bytes = 32 * 2 ** 20;
  const { socket, said } = await start({ peerMemory, handlers: largeAnswers(bytes) });
  socket.pause();
  socket.write(getTask('a'));
  await expect.poll(() => peerMemory.heldBytes, patience).toBeGreaterThan(bytes);
  socket.resume();
  await expect.poll(() => said.text.length, patience).toBeGreaterThan(bytes);
  await expect.poll(() => peerMemory.heldBytes, patience).toBe(0);
});

test('memory: a response beyond the limit is refused before it is sent', async () => {
  const peerMemory = memoryOf(100_000);
  const { socket, answers, said } = await start({ peerMemory, handlers: largeAnswers(200_000) });
  socket.write(getTask('a'));
  await expect.poll(answers, patience).toEqual(['HTTP/1.1 503']);
  expect(said.text).toContain('retry-after: 1');
  expect(peerMemory.heldBytes).toBe(0);
});

test('read rate: a client that does not read its response is disconnected', async () => {
  const timers: { ms: number; run: () => void }[] = [];
  let now = 0;
  const clock = {
    ...systemClock,
    monotonic: () => now,
    after: (ms: number, run: () => void) => {
      const timer = { ms, run };
      timers.push(timer);
      return { cancel: () => void timers.splice(timers.indexOf(timer), 1) };
    },
  };
  const peerMemory = memoryOf(64 * 2 ** 20);
  const { socket } = await start({
    handlers: largeAnswers(32 * 2 ** 20),
    peerMemory,
    world: { clock, random: systemRandom, log: silentLog },
  });
  socket.pause();
  socket.write(getTask('a'));
  await expect.poll(() => peerMemory.heldBytes, patience).toBeGreaterThan(0);
  for (let step = 0; step < 15; step++) {
    now += 5_000;
    for (const timer of timers.splice(0)) timer.run();
    await systemClock.sleep(5);
  }
  await expect.poll(() => peerMemory.heldBytes, patience).toBe(0);
});
