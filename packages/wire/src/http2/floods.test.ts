import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  callFrames,
  callHeaders,
  emptySettings,
  frame,
  headerBlock,
  number32,
  rstStream,
} from '../grpc/frames.test-support.js';
import {
  framed,
  openSession,
  rawCall,
  startTransport,
  type TestTransport,
} from '../grpc/transport.test-support.js';
import { RawPeer, settingsPayload } from './peer.test-support.js';
import { errorCodes, flags, frameTypes as types, settings } from './frames.js';

const hello = framed(Buffer.from('hello'));
const nothing = Buffer.alloc(0);
const { endHeaders, endStream } = flags;
let server: TestTransport;
beforeAll(async () => {
  server = await startTransport();
});
afterAll(() => server.close());

async function expectWell(): Promise<void> {
  const session = openSession(server.url);
  expect((await rawCall(session, '/t.T/Echo', hello)).body).toEqual(hello);
  session.destroy();
}

const open = (id: number, path = '/t.T/Chat') =>
  frame(types.headers, endHeaders, id, callHeaders(path));

const floods: [what: string, start: Buffer, each: (n: number) => Buffer][] = [
  ['pings', nothing, () => frame(types.ping, 0, 0, Buffer.alloc(8))],
  ['settings', nothing, () => emptySettings],
  ['data of nothing', open(1), () => frame(types.data, 0, 1, nothing)],
  ['data of padding', open(1), () => frame(types.data, flags.padded, 1, Buffer.alloc(3, 2))],
  ['priorities', nothing, () => frame(types.priority, 0, 1, Buffer.alloc(5))],
  ['unknown frames', nothing, () => frame(0xee, 0, 0, nothing)],
  ['resets', nothing, (n) => Buffer.concat([open(2 * n + 1), rstStream(2 * n + 1, 8)])],
  [
    'mistakes that make us reset',
    nothing,
    (n) => Buffer.concat([open(2 * n + 1), frame(types.windowUpdate, 0, 2 * n + 1, number32(0))]),
  ],
  [
    'requests that are malformed',
    nothing,
    (n) => frame(types.headers, 5, 2 * n + 1, headerBlock({ ':path': '/' })),
  ],
  [
    'headers without end',
    frame(types.headers, 0, 1, callHeaders('/')),
    () => frame(9, 0, 1, nothing),
  ],
  [
    'headers of many bytes',
    frame(types.headers, 0, 1, callHeaders('/')),
    () => frame(9, 0, 1, Buffer.alloc(16_384, 0x82)),
  ],
];

test.each(floods)(
  'a flood of %s closes the connection and does not affect other clients',
  async (_what, start, each) => {
    const peer = await RawPeer.dial(server);
    peer.send(emptySettings, start);
    for (let n = 0; n < 200 && !peer.isClosed; n++) {
      peer.send(...Array.from({ length: 200 }, (_, i) => each(200 * n + i)));
      await new Promise(setImmediate);
    }
    const code = await peer.goaway();
    // The word may be lost when the peer is still sending, but the connection is gone.
    expect([errorCodes.ENHANCE_YOUR_CALM, -1]).toContain(code);
    await expectWell();
    await expect.poll(() => server.aborted.length).toBe(server.held.length);
  },
);

test('a peer that sends requests and never reads is disconnected', async () => {
  const peer = await RawPeer.dial(server);
  peer.socket.pause();
  const window = settingsPayload({ name: settings.initialWindowSize, value: 2 ** 31 - 1 });
  peer.send(frame(types.settings, 0, 0, window));
  peer.send(frame(types.windowUpdate, 0, 0, number32(2 ** 30)));
  const before = process.memoryUsage().arrayBuffers;
  // As much as the system holds for it, and more.
  peer.send(callFrames(1, '/t.T/Count', framed(Buffer.from('200 100000'))));
  await expectWell();
  const ping = Buffer.concat(Array.from({ length: 3_000 }, () => frame(6, 0, 0, Buffer.alloc(8))));
  peer.send(ping);
  await expectWell();
  peer.socket.resume();
  expect(await peer.goaway()).not.toBe(0);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(100e6);
  await expectWell();
});

test('streams beyond 1,000 are refused and the others continue', async () => {
  const peer = await RawPeer.dial(server);
  server.held.length = 0;
  peer.send(emptySettings);
  for (let n = 0; n < 1_010; n++) peer.send(callFrames(2 * n + 1, '/t.T/Hold', hello));
  expect(await peer.rst(2_001)).toBe(errorCodes.REFUSED_STREAM);
  await peer.until(() => peer.of(types.rstStream).length === 10);
  expect(server.held).toHaveLength(1_000);
  for (const call of server.held.slice(0, 500)) call.respond(hello);
  await peer.until(() => peer.hasEnded(999));
  peer.send(callFrames(3_001, '/t.T/Echo', hello));
  await peer.until(() => peer.hasEnded(3_001));
  peer.socket.destroy();
  await expect.poll(() => server.aborted.length).toBeGreaterThanOrEqual(500);
});

test('a peer with an exhausted window blocks only itself', async () => {
  const peer = await RawPeer.dial(server);
  const window = settingsPayload({ name: settings.initialWindowSize, value: 0 });
  peer.send(frame(types.settings, 0, 0, window));
  for (let n = 0; n < 1_000; n++) {
    peer.send(callFrames(2 * n + 1, '/t.T/Count', framed(Buffer.from('1 1000'))));
  }
  await peer.until(() => peer.of(types.headers).length === 1_000);
  expect(peer.of(types.data)).toEqual([]);
  await expectWell();
  // By one byte at a time it comes to an end, too.
  for (let n = 0; n < 1_005; n++) peer.send(frame(types.windowUpdate, 0, 1, number32(1)));
  await peer.until(() => peer.hasEnded(1));
  await expectWell();
  peer.socket.destroy();
});

test('incomplete requests are limited by the memory of the connection', async () => {
  const peer = await RawPeer.dial(server);
  peer.send(emptySettings);
  const head = Buffer.alloc(16_384);
  head.writeUInt32BE(8 * 1024 * 1024, 1);
  const piece = frame(types.data, 0, 1, Buffer.alloc(16_384));
  const before = process.memoryUsage().arrayBuffers;
  // Each sends a window full of its message and no more: 300 of them a megabyte each.
  const write = async (id: number, bytes: Buffer) => {
    const own = Buffer.from(bytes);
    own.writeUInt32BE(id, 5);
    if (!peer.socket.write(own)) await new Promise((resolve) => peer.socket.once('drain', resolve));
  };
  for (let n = 0; n < 300; n++) {
    peer.send(open(2 * n + 1, '/t.T/Echo'));
    await write(2 * n + 1, frame(types.data, 0, 1, head));
    for (let i = 1; i < 64; i++) await write(2 * n + 1, piece);
  }
  await peer.until(() => peer.of(types.headers).length > 0);
  expect(peer.of(types.headers)[0]!.payload.toString('latin1')).toMatch(/grpc-status.8/s);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(200e6);
  await expectWell();
  peer.socket.destroy();
});

test('close: open streams finish and later streams are ignored', async () => {
  const own = await startTransport();
  const peer = await RawPeer.dial(own);
  peer.send(emptySettings, callFrames(1, '/t.T/Hold', hello));
  await peer.until(() => own.held.length === 1);
  const closed = own.close(new AbortController().signal);
  await peer.until(() => peer.of(types.goaway).length === 1);
  const [goaway] = peer.of(types.goaway);
  expect([goaway!.payload.readUInt32BE(), goaway!.payload.readUInt32BE(4)]).toEqual([1, 0]);
  peer.send(callFrames(3, '/t.T/Hold', hello), frame(types.data, endStream, 3, hello));
  peer.send(frame(types.ping, 0, 0, Buffer.alloc(8)));
  await peer.until(() => peer.of(types.ping).length === 1);
  expect(own.held).toHaveLength(1);
  own.held[0]!.respond(Buffer.from('late'));
  await closed;
  await peer.until(() => peer.isClosed);
  expect(peer.data(1)).toEqual(framed(Buffer.from('late')));
  expect(peer.frames.some(({ stream }) => stream === 3)).toBe(false);
});
