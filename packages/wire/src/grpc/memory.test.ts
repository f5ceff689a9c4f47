import { gzipSync } from 'node:zlib';
import { PeerMemory, peerMemoryLimits } from '@millrace/kit/peer-memory';
import { afterEach, expect, test } from 'vitest';
import { RawPeer, settingsPayload } from '../http2/peer.test-support.js';
import { errorCodes, frameTypes as types, settings } from '../http2/frames.js';
import {
  ack,
  callFrames,
  callHeaders,
  emptySettings,
  endHeaders,
  endStream,
  frame,
  number32,
} from './frames.test-support.js';
import { ManualClock } from './manual-clock.test-support.js';
import { framed, startTransport, type TestTransport } from './transport.test-support.js';

const mebibyte = 1024 * 1024;
let server: TestTransport;
let memory: PeerMemory;

async function start(totalBytes: number, clock?: ManualClock): Promise<void> {
  memory = new PeerMemory(peerMemoryLimits(totalBytes));
  server = await startTransport({ memory, ...(clock && { clock }) });
}
afterEach(() => server.close());

const hello = framed(Buffer.from('hello'));
const open = (id: number, path: string, more = {}) =>
  frame(types.headers, endHeaders, id, callHeaders(path, more));

/** The status of a call, from trailers whose fields are literals. */
function statusOf(peer: RawPeer, id: number): string | undefined {
  const block = peer.of(types.headers, id).at(-1)?.payload.toString('latin1');
  return /grpc-status.([0-9]+)/s.exec(block ?? '')?.[1];
}

test('memory: unfinished messages count, and one that does not fit is refused', async () => {
  await start(16 * mebibyte);
  const peer = await RawPeer.dial(server);
  peer.send(emptySettings);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(3 * mebibyte, 1);
  const piece = Buffer.alloc(16_000);
  for (const id of [1, 3, 5, 7]) {
    peer.send(open(id, '/t.T/Echo'), frame(types.data, 0, id, head));
    for (let n = 0; n < 70; n++) peer.send(frame(types.data, 0, id, piece));
  }
  // Each message holds more than 1 MiB by now: three fit in 4 MiB, a fourth does not.
  await peer.until(() => statusOf(peer, 7) !== undefined);
  expect(statusOf(peer, 7)).toBe('8');
  expect(statusOf(peer, 1)).toBeUndefined();
  expect(memory.heldBytes).toBeGreaterThan(3 * 70 * 16_000);
  expect(memory.heldBytes).toBeLessThanOrEqual(4 * mebibyte);
  peer.socket.destroy();
  await expect.poll(() => memory.heldBytes).toBe(0);
});

test('memory: a message is decompressed after END_STREAM only, and counts what comes out', async () => {
  await start(16 * mebibyte);
  const peer = await RawPeer.dial(server);
  peer.send(emptySettings);
  const bomb = framed(gzipSync(Buffer.alloc(3 * mebibyte)), 1);
  const encoding = { 'grpc-encoding': 'gzip' };
  for (const id of [1, 3, 5]) {
    peer.send(open(id, '/t.T/Hold', encoding), frame(types.data, 0, id, bomb));
  }
  peer.send(callFrames(7, '/t.T/Echo', hello));
  await peer.until(() => peer.hasEnded(7));
  expect(memory.heldBytes).toBeLessThan(100_000);
  peer.send(frame(types.data, endStream, 1, Buffer.alloc(0)));
  await expect.poll(() => server.held.length).toBe(1);
  expect(memory.heldBytes).toBeGreaterThan(3 * mebibyte);
  peer.send(frame(types.data, endStream, 3, Buffer.alloc(0)));
  await peer.until(() => statusOf(peer, 3) !== undefined);
  expect(statusOf(peer, 3)).toBe('8');
  peer.socket.destroy();
  await expect.poll(() => memory.heldBytes).toBe(0);
});

const zeroWindow = frame(
  types.settings,
  0,
  0,
  settingsPayload({ name: settings.initialWindowSize, value: 0 }),
);

test('memory: a response counts until its last byte is taken', async () => {
  await start(16 * mebibyte);
  const peer = await RawPeer.dial(server);
  peer.send(zeroWindow, callFrames(1, '/t.T/Count', framed(Buffer.from('1 60000'))));
  await expect.poll(() => memory.heldBytes).toBeGreaterThan(60_000);
  peer.send(frame(types.windowUpdate, 0, 1, number32(60_004)));
  await peer.until(() => peer.data(1).length === 60_004);
  expect(memory.heldBytes).toBeGreaterThan(60_000);
  peer.send(frame(types.windowUpdate, 0, 1, number32(1)));
  await peer.until(() => peer.hasEnded(1));
  await expect.poll(() => memory.heldBytes).toBe(0);
  peer.socket.destroy();
});

/** Answers every ping, so that the server has no other reason to hang up. */
function answerPings(peer: RawPeer): void {
  let completed = 0;
  peer.socket.on('data', () => {
    const pings = peer.of(types.ping).filter(({ flags }) => flags === 0);
    for (; completed < pings.length; completed++) {
      peer.send(frame(types.ping, ack, 0, pings[completed]!.payload));
    }
  });
}

/** Half a minute in steps as the server looks; `each` runs between them. */
async function halfMinute(clock: ManualClock, each: () => void): Promise<void> {
  for (let n = 0; n < 6; n++) {
    each();
    await new Promise((resolve) => setTimeout(resolve, 20));
    clock.advance(5_000);
  }
}

test('read rate: streams that take a byte now and then are reset', async () => {
  const clock = new ManualClock();
  await start(256 * mebibyte, clock);
  const peer = await RawPeer.dial(server);
  answerPings(peer);
  const ids = [1, 3, 5, 7];
  const sendRequest = framed(Buffer.from('1 100000'));
  peer.send(zeroWindow, ...ids.map((id) => callFrames(id, '/t.T/Count', sendRequest)));
  await expect.poll(() => memory.heldBytes).toBeGreaterThan(400_000);
  const oneByte = () =>
    peer.send(...ids.map((id) => frame(types.windowUpdate, 0, id, number32(1))));
  await halfMinute(clock, oneByte);
  await halfMinute(clock, oneByte);
  for (const id of ids) expect(await peer.rst(id)).toBe(errorCodes.ENHANCE_YOUR_CALM);
  await expect.poll(() => memory.heldBytes).toBe(0);
  peer.socket.destroy();
});

test('read rate: a connection whose own window stays shut is closed', async () => {
  const clock = new ManualClock();
  await start(256 * mebibyte, clock);
  const peer = await RawPeer.dial(server);
  answerPings(peer);
  const wide = settingsPayload({ name: settings.initialWindowSize, value: 1_000_000 });
  const sendRequest = framed(Buffer.from('1 200000'));
  peer.send(frame(types.settings, 0, 0, wide), callFrames(1, '/t.T/Count', sendRequest));
  await peer.until(() => peer.data(1).length === 65_535);
  await halfMinute(clock, () => undefined);
  await halfMinute(clock, () => undefined);
  expect(await peer.goaway()).toBe(errorCodes.ENHANCE_YOUR_CALM);
  await expect.poll(() => memory.heldBytes).toBe(0);
});

test('read rate: a reader of 2 KiB/s is left alone', async () => {
  const clock = new ManualClock();
  await start(256 * mebibyte, clock);
  const peer = await RawPeer.dial(server);
  answerPings(peer);
  peer.send(zeroWindow, callFrames(1, '/t.T/Count', framed(Buffer.from('1 1000000'))));
  await expect.poll(() => memory.heldBytes).toBeGreaterThan(1_000_000);
  const addWindow = (id: number) => frame(types.windowUpdate, 0, id, number32(10_240));
  const some = () => peer.send(addWindow(0), addWindow(1));
  for (let n = 0; n < 3; n++) await halfMinute(clock, some);
  expect(peer.of(types.rstStream)).toEqual([]);
  expect(peer.isClosed).toBe(false);
  peer.socket.destroy();
});
