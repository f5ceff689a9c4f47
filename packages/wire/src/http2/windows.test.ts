import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  callFrames,
  callHeaders,
  emptySettings,
  frame,
  number32,
  rstStream,
} from '../grpc/frames.test-support.js';
import { framed, startTransport, type TestTransport } from '../grpc/transport.test-support.js';
import type { GrpcCall } from '../grpc/call.js';
import { RawPeer, settingsPayload } from './peer.test-support.js';
import { errorCodes, flags, frameTypes as types, settings } from './frames.js';

const { endStream, endHeaders } = flags;
let server: TestTransport;
beforeAll(async () => {
  server = await startTransport();
});
afterAll(() => server.close());

/** A call whose response is one message of `size` bytes. */
const count = (id: number, size: number, messages = 1) =>
  callFrames(id, '/t.T/Count', framed(Buffer.from(`${messages} ${size}`)));
const addWindow = (id: number, byteCount: number) =>
  frame(types.windowUpdate, 0, id, number32(byteCount));
const set = (name: number, value: number) =>
  frame(types.settings, 0, 0, settingsPayload({ name, value }));
const window = (value: number) => set(settings.initialWindowSize, value);
const sent = (size: number) => framed(Buffer.from('0'.padEnd(size)));
/** Answered after all that was sent before has been. */
async function settled(peer: RawPeer): Promise<void> {
  const before = peer.of(types.ping).length;
  peer.send(frame(types.ping, 0, 0, Buffer.alloc(8)));
  await peer.until(() => peer.of(types.ping).length > before);
}

test('flow control: the stream window is respected', async () => {
  const peer = await RawPeer.dial(server);
  peer.send(window(10), count(1, 100));
  await peer.until(() => peer.data(1).length === 10);
  await settled(peer);
  expect(peer.data(1)).toHaveLength(10);
  for (let n = 11; n <= 20; n++) {
    peer.send(addWindow(1, 1));
    await peer.until(() => peer.data(1).length === n);
  }
  peer.send(addWindow(1, 1_000));
  await peer.until(() => peer.hasEnded(1));
  expect(peer.data(1)).toEqual(sent(100));
  peer.socket.destroy();
});

test('flow control: a message may be split anywhere, including its prefix', async () => {
  const peer = await RawPeer.dial(server);
  peer.send(window(0), count(1, 3, 4));
  await peer.until(() => peer.of(types.headers, 1).length > 0);
  for (let n = 0; n < 32; n++) {
    peer.send(addWindow(1, 1));
    await settled(peer);
  }
  await peer.until(() => peer.hasEnded(1));
  const messages = ['0  ', '1  ', '2  ', '3  '].map((text) => framed(Buffer.from(text)));
  expect(peer.data(1)).toEqual(Buffer.concat(messages));
  peer.socket.destroy();
});

test('flow control: the connection window is respected, and streams take turns', async () => {
  const peer = await RawPeer.dial(server);
  peer.send(window(10_000_000), count(1, 200_000), count(3, 200_000), count(5, 200_000));
  const total = () => [1, 3, 5].reduce((sum, id) => sum + peer.data(id).length, 0);
  await peer.until(() => total() === 65_535);
  // What needs no window is answered all the same.
  peer.send(callFrames(7, '/t.T/Fail', framed(Buffer.from('no'))));
  await peer.until(() => peer.hasEnded(7));
  peer.send(addWindow(0, 300_000));
  await peer.until(() => total() === 365_535);
  const shares = [1, 3, 5].map((id) => peer.data(id).length);
  expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(2 * 16_384);
  peer.send(addWindow(0, 1_000_000));
  await peer.until(() => [1, 3, 5].every((id) => peer.hasEnded(id)));
  for (const id of [1, 3, 5]) expect(peer.data(id).equals(sent(200_000))).toBe(true);
  peer.socket.destroy();
});

test('flow control: SETTINGS_INITIAL_WINDOW_SIZE applies to open streams', async () => {
  const peer = await RawPeer.dial(server);
  peer.send(window(100), count(1, 500));
  await peer.until(() => peer.data(1).length === 100);
  // It becomes -50, so that 50 more are none.
  peer.send(set(settings.initialWindowSize, 50), addWindow(1, 50));
  await settled(peer);
  await settled(peer);
  expect(peer.data(1)).toHaveLength(100);
  peer.send(addWindow(1, 1));
  await peer.until(() => peer.data(1).length === 101);
  peer.send(window(450));
  await peer.until(() => peer.data(1).length === 501);
  peer.send(window(1_000));
  await peer.until(() => peer.hasEnded(1));
  peer.socket.destroy();
});

test('flow control: a window overflow by SETTINGS closes the connection', async () => {
  const peer = await RawPeer.dial(server);
  peer.send(emptySettings, callFrames(1, '/t.T/Hold', framed(Buffer.of(1))));
  peer.send(addWindow(1, 2 ** 31 - 1 - 65_535), window(65_536));
  expect(await peer.goaway()).toBe(errorCodes.FLOW_CONTROL_ERROR);
});

test('SETTINGS_MAX_FRAME_SIZE of the peer is respected', async () => {
  const peer = await RawPeer.dial(server);
  peer.send(window(10_000_000), addWindow(0, 10_000_000), count(1, 100_000));
  await peer.until(() => peer.hasEnded(1));
  const longest = (id: number) =>
    Math.max(...peer.of(types.data, id).map(({ payload }) => payload.length));
  expect(longest(1)).toBe(16_384);
  peer.send(set(settings.maxFrameSize, 50_000), count(3, 100_000));
  await peer.until(() => peer.hasEnded(3));
  expect(longest(3)).toBe(50_000);
  expect(peer.data(3).equals(sent(100_000))).toBe(true);
  peer.socket.destroy();
});

test('flow control: a peer that exceeds its window gets FLOW_CONTROL_ERROR', async () => {
  const peer = await RawPeer.dial(server);
  peer.send(emptySettings, frame(types.headers, endHeaders, 1, callHeaders('/t.T/Deaf')));
  const window = 1024 * 1024;
  const piece = frame(types.data, 0, 1, Buffer.alloc(16_380));
  for (let used = 0; used + 16_380 <= window; used += 16_380) peer.send(piece);
  await settled(peer);
  expect(peer.of(types.rstStream)).toEqual([]);
  expect(peer.of(types.windowUpdate, 1)).toEqual([]);
  peer.send(piece);
  expect(await peer.rst(1)).toBe(errorCodes.FLOW_CONTROL_ERROR);
  peer.socket.destroy();
});

test('flow control: large requests get WINDOW_UPDATE before the window is exhausted', async () => {
  const peer = await RawPeer.dial(server);
  const message = framed(Buffer.alloc(5_000_000));
  peer.send(emptySettings, window(10_000_000), addWindow(0, 10_000_000));
  peer.send(frame(types.headers, endHeaders, 1, callHeaders('/t.T/Echo')));
  const frames: Buffer[] = [];
  for (let at = 0; at < message.length; at += 16_384) {
    const isLast = at + 16_384 >= message.length;
    const piece = message.subarray(at, at + 16_384);
    frames.push(frame(types.data, isLast ? endStream : 0, 1, piece));
  }
  const granted = (id: number) =>
    peer
      .of(types.windowUpdate, id)
      .reduce((sum, { payload }) => sum + payload.readUInt32BE(), id === 0 ? 65_535 : 1024 * 1024);
  let used = 0;
  for (const each of frames) {
    const size = each.length - 9;
    await peer.until(() => granted(1) >= used + size && granted(0) >= used + size);
    peer.send(each);
    used += size;
  }
  await peer.until(() => peer.hasEnded(1));
  expect(peer.data(1).equals(message)).toBe(true);
  expect(peer.of(types.windowUpdate, 1).length).toBeLessThan(12);
  peer.socket.destroy();
});

test('framed messages may be shared by several streams and are not modified', async () => {
  const peer = await RawPeer.dial(server);
  server.held.length = 0;
  peer.send(window(1_000_000), addWindow(0, 1_000_000));
  for (const id of [1, 3, 5]) peer.send(callFrames(id, '/t.T/Hold', framed(Buffer.of(id))));
  await peer.until(() => server.held.length === 3);
  const small = Buffer.concat([framed(Buffer.from('one')), framed(Buffer.from('two'))]);
  const large = framed(Buffer.alloc(100_000, 'large'));
  const copies = [small, large].map((bytes) => Buffer.from(bytes));
  for (const call of server.held) {
    call.sendFramed(small);
    call.send(Buffer.from('own'));
    call.sendFramed(large);
    call.end();
  }
  await peer.until(() => [1, 3, 5].every((id) => peer.hasEnded(id)));
  const whole = Buffer.concat([small, framed(Buffer.from('own')), large]);
  for (const id of [1, 3, 5]) expect(peer.data(id).equals(whole)).toBe(true);
  expect([small, large]).toEqual(copies);
  peer.socket.destroy();
});

test('a cancelled call completes a partly sent message', async () => {
  const peer = await RawPeer.dial(server);
  server.held.length = 0;
  peer.send(window(50), callFrames(1, '/t.T/Hold', framed(Buffer.of(1))));
  await peer.until(() => server.held.length === 1);
  const [call] = server.held;
  call!.send(Buffer.alloc(95, 'a'));
  call!.send(Buffer.alloc(95, 'b'));
  await peer.until(() => peer.data(1).length === 50);
  (call as GrpcCall).outbox.drop();
  expect(call!.unsentBytes).toBe(50);
  call!.end({ code: 4, message: 'late' });
  peer.send(addWindow(1, 1_000));
  await peer.until(() => peer.hasEnded(1));
  expect(peer.data(1)).toEqual(framed(Buffer.alloc(95, 'a')));
  peer.socket.destroy();
});

test('queued data of a reset stream is dropped', async () => {
  const peer = await RawPeer.dial(server);
  server.held.length = 0;
  peer.send(window(0), callFrames(1, '/t.T/Hold', framed(Buffer.of(1))));
  await peer.until(() => server.held.length === 1);
  const [call] = server.held;
  call!.send(Buffer.alloc(100_000));
  expect(call!.unsentBytes).toBe(100_005);
  peer.send(rstStream(1, 8));
  await peer.until(() => call!.unsentBytes === 0);
  call!.send(Buffer.alloc(100_000));
  expect(call!.unsentBytes).toBe(0);
  peer.socket.destroy();
});
