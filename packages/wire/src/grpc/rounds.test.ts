import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  ack,
  callFrames,
  callHeaders,
  emptySettings,
  endHeaders,
  frame,
  framesOf,
  frameTypes,
  preface,
  type Frame,
} from './frames.test-support.js';
import { ManualClock } from './manual-clock.test-support.js';
import {
  framed,
  openSession,
  rawCall,
  startTransport,
  type TestTransport,
} from './transport.test-support.js';

const hello = framed(Buffer.from('hello'));
const opening = Buffer.concat([preface, emptySettings]);
let clock: ManualClock;
let server: TestTransport;

beforeEach(async () => {
  clock = new ManualClock();
  server = await startTransport({ clock });
});
afterEach(() => server.close());

/** What the server says, as it says it. */
function listen(socket: Socket): () => Frame[] {
  let bytes = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => (bytes = Buffer.concat([bytes, chunk])));
  return () => framesOf(bytes);
}

const count = (frames: Frame[], type: number) => frames.filter((each) => each.type === type).length;

/** Advances 30 s and waits until the server has received the PING acknowledgement. */
async function round(): Promise<void> {
  clock.advance(30_000);
  // Only the timer of the next check is left; the PING timeout is cancelled.
  await expect.poll(() => clock.pending).toBe(1);
}

test('keepalive: the server sends PING every 30 s', async () => {
  const session = openSession(server.url);
  await rawCall(session, '/t.T/Echo', hello);
  let pings = 0;
  session.on('ping', () => void pings++);
  for (let n = 1; n <= 5; n++) {
    await round();
    expect(pings).toBe(n);
  }
  expect((await rawCall(session, '/t.T/Echo', hello)).status).toBe('0');
  session.close();
  await expect.poll(() => clock.pending).toBe(0);
});

test('keepalive: a client that does not acknowledge a PING within 20 s is disconnected', async () => {
  const socket = await server.dial();
  const received = listen(socket);
  socket.write(Buffer.concat([opening, callFrames(1, '/t.T/Hold', hello)]));
  await expect.poll(() => server.held.length).toBe(1);
  clock.advance(30_000);
  await expect.poll(() => count(received(), frameTypes.ping)).toBe(1);
  clock.advance(19_000);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(socket.destroyed).toBe(false);
  clock.advance(1_000);
  await once(socket, 'close');
  await expect.poll(() => server.aborted).toMatchObject([{ code: 'CANCELLED' }]);
  await expect.poll(() => clock.pending).toBe(0);
});

test('a connection error closes the connection immediately', async () => {
  const socket = await server.dial();
  const received = listen(socket);
  const closed = new Promise((resolve) => socket.on('close', resolve));
  socket.write(Buffer.concat([opening, frame(frameTypes.ping, 0, 0, Buffer.alloc(3))]));
  await closed;
  expect(count(received(), frameTypes.goaway)).toBe(1);
  await expect.poll(() => clock.pending).toBe(0);
});

test('after a connection error, a peer that does not close is disconnected after 1 s', async () => {
  const socket = await server.dial(true);
  const received = listen(socket);
  const closed = new Promise((resolve) => socket.on('close', resolve));
  socket.write(Buffer.concat([opening, frame(frameTypes.ping, 0, 0, Buffer.alloc(3))]));
  await expect.poll(() => count(received(), frameTypes.goaway)).toBe(1);
  await expect.poll(() => socket.readableEnded).toBe(true);
  expect(clock.pending).toBeGreaterThan(0);
  clock.advance(1_000);
  await expect.poll(() => clock.pending).toBe(0);
  socket.destroy();
  await closed;
});

/** Answers every ping, and nothing else. */
function keepAnswering(socket: Socket): void {
  let completed = 0;
  const received = listen(socket);
  socket.on('data', () => {
    const pings = received().filter(({ type, flags }) => type === frameTypes.ping && flags === 0);
    for (; completed < pings.length; completed++) {
      socket.write(frame(frameTypes.ping, ack, 0, pings[completed]!.payload));
    }
  });
}

test('an incomplete request times out after 2 minutes', async () => {
  const socket = await server.dial();
  keepAnswering(socket);
  const received = listen(socket);
  const open = frame(frameTypes.headers, endHeaders, 1, callHeaders('/t.T/Echo'));
  socket.write(Buffer.concat([opening, open, frame(frameTypes.data, 0, 1, hello)]));
  // Held calls have sent all they have to, and chats may go on.
  const held = callFrames(3, '/t.T/Hold', hello);
  const chat = frame(frameTypes.headers, endHeaders, 5, callHeaders('/t.T/Chat'));
  socket.write(Buffer.concat([held, chat]));
  await expect.poll(() => server.held.length).toBe(1);
  for (let n = 0; n < 3; n++) await round();
  expect(received().some(({ stream }) => stream === 1)).toBe(false);
  await round();
  await expect.poll(() => received().some(({ stream }) => stream === 1)).toBe(true);
  for (let n = 0; n < 3; n++) await round();
  expect(received().some(({ stream }) => stream > 1)).toBe(false);
  expect(server.aborted).toEqual([]);
  socket.destroy();
});

test('a response that is not read is dropped after about a minute', async () => {
  const socket = await server.dial();
  keepAnswering(socket);
  const received = listen(socket);
  const sendRequest = framed(Buffer.from('1 200000'));
  socket.write(Buffer.concat([opening, callFrames(1, '/t.T/Count', sendRequest)]));
  await expect.poll(() => count(received(), frameTypes.data)).toBeGreaterThan(3);
  await round();
  expect(count(received(), frameTypes.rstStream)).toBe(0);
  await round();
  await round();
  await expect.poll(() => count(received(), frameTypes.rstStream)).toBe(1);
  socket.destroy();
});
