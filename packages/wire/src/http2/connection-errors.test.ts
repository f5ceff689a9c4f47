import { afterAll, beforeAll, expect, test } from 'vitest';
import { emptySettings, frame, number32, preface, rstStream } from '../grpc/frames.test-support.js';
import { startTransport, type TestTransport } from '../grpc/transport.test-support.js';
import { call, data, echo, open, RawPeer, set, whole } from './peer.test-support.js';
import { errorCodes, flags, frameTypes as types, settings, type ErrorName } from './frames.js';

const nothing = Buffer.alloc(0);
const { endHeaders, padded, priority, ack } = flags;

let server: TestTransport;
beforeAll(async () => {
  server = await startTransport();
});
afterAll(() => server.close());

const fatal: [what: string, code: ErrorName, bytes: Buffer[]][] = [
  ['a first frame that is not settings', 'PROTOCOL_ERROR', [call(1)]],
  ['an ack before any settings', 'PROTOCOL_ERROR', [frame(types.settings, ack, 0, nothing)]],
  ['a frame that is too long', 'FRAME_SIZE_ERROR', [emptySettings, data(1, Buffer.alloc(16_385))]],
  ['data for no stream', 'PROTOCOL_ERROR', [emptySettings, data(0)]],
  ['data for a stream that is idle', 'PROTOCOL_ERROR', [emptySettings, data(7)]],
  ['data for an even stream', 'PROTOCOL_ERROR', [emptySettings, open(9), data(2)]],
  ['headers for no stream', 'PROTOCOL_ERROR', [emptySettings, open(0)]],
  ['headers for an even stream', 'PROTOCOL_ERROR', [emptySettings, open(2)]],
  ['a stream below the last', 'PROTOCOL_ERROR', [emptySettings, open(5), open(3)]],
  ['a priority for no stream', 'PROTOCOL_ERROR', [emptySettings, frame(2, 0, 0, Buffer.alloc(5))]],
  ['a push', 'PROTOCOL_ERROR', [emptySettings, frame(types.pushPromise, 4, 1, number32(2))]],
  ['a reset of no stream', 'PROTOCOL_ERROR', [emptySettings, rstStream(0, 8)]],
  ['a reset of a stream that is idle', 'PROTOCOL_ERROR', [emptySettings, rstStream(1, 8)]],
  [
    'a reset of 3 bytes',
    'FRAME_SIZE_ERROR',
    [emptySettings, open(1), frame(3, 0, 1, Buffer.alloc(3))],
  ],
  ['settings on a stream', 'PROTOCOL_ERROR', [emptySettings, frame(4, 0, 1, nothing)]],
  ['half a setting', 'FRAME_SIZE_ERROR', [frame(types.settings, 0, 0, Buffer.alloc(5))]],
  ['an ack that says more', 'FRAME_SIZE_ERROR', [emptySettings, frame(4, ack, 0, Buffer.alloc(6))]],
  ['push set to 2', 'PROTOCOL_ERROR', [set(settings.enablePush, 2)]],
  ['a window that is too large', 'FLOW_CONTROL_ERROR', [set(settings.initialWindowSize, 2 ** 31)]],
  ['frames that are too small', 'PROTOCOL_ERROR', [set(settings.maxFrameSize, 16_383)]],
  ['frames that are too large', 'PROTOCOL_ERROR', [set(settings.maxFrameSize, 2 ** 24)]],
  ['a ping of 7 bytes', 'FRAME_SIZE_ERROR', [emptySettings, frame(6, 0, 0, Buffer.alloc(7))]],
  ['a ping on a stream', 'PROTOCOL_ERROR', [emptySettings, frame(6, 0, 1, Buffer.alloc(8))]],
  ['a goaway on a stream', 'PROTOCOL_ERROR', [emptySettings, frame(7, 0, 1, Buffer.alloc(8))]],
  ['a goaway of 7 bytes', 'FRAME_SIZE_ERROR', [emptySettings, frame(7, 0, 0, Buffer.alloc(7))]],
  [
    'a window that grows by nothing',
    'PROTOCOL_ERROR',
    [emptySettings, frame(8, 0, 0, number32(0))],
  ],
  [
    'a window that grows too far',
    'FLOW_CONTROL_ERROR',
    [emptySettings, frame(8, 0, 0, number32(2 ** 31 - 1))],
  ],
  ['a window of an idle stream', 'PROTOCOL_ERROR', [emptySettings, frame(8, 0, 1, number32(1))]],
  ['a window of 5 bytes', 'FRAME_SIZE_ERROR', [emptySettings, frame(8, 0, 0, Buffer.alloc(5))]],
  ['a continuation of nothing', 'PROTOCOL_ERROR', [emptySettings, frame(9, 4, 1, nothing)]],
  [
    'headers that go on elsewhere',
    'PROTOCOL_ERROR',
    [emptySettings, frame(1, 0, 1, echo()), frame(9, 4, 3, nothing)],
  ],
  [
    'a ping among headers',
    'PROTOCOL_ERROR',
    [emptySettings, frame(1, 0, 1, echo()), frame(6, 0, 0, Buffer.alloc(8))],
  ],
  [
    'an unknown frame among headers',
    'PROTOCOL_ERROR',
    [emptySettings, frame(1, 0, 1, echo()), frame(0xee, 0, 1, nothing)],
  ],
  [
    'headers that cannot be read',
    'COMPRESSION_ERROR',
    [emptySettings, open(1, Buffer.of(0xff, 0xff))],
  ],
  [
    'trailers that cannot be read',
    'COMPRESSION_ERROR',
    [emptySettings, open(1), whole(1, Buffer.of(0x80))],
  ],
  [
    'more padding than data',
    'PROTOCOL_ERROR',
    [emptySettings, open(1), data(1, Buffer.of(5, 0, 0, 0, 0), padded)],
  ],
  [
    'padding without a length',
    'FRAME_SIZE_ERROR',
    [emptySettings, open(1), data(1, nothing, padded)],
  ],
  [
    'more padding than headers',
    'PROTOCOL_ERROR',
    [emptySettings, frame(types.headers, endHeaders | padded, 1, Buffer.of(3, 0x82))],
  ],
  [
    'a priority of 3 bytes in headers',
    'PROTOCOL_ERROR',
    [emptySettings, frame(types.headers, endHeaders | priority, 1, Buffer.alloc(3))],
  ],
];

test.each(fatal)('%s closes the connection with %s', async (_what, code, bytes) => {
  const peer = await RawPeer.dial(server);
  peer.send(...bytes);
  expect(await peer.goaway()).toBe(errorCodes[code]);
});

test('an invalid preface gets GOAWAY and the connection is closed', async () => {
  const socket = await server.dial();
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => void chunks.push(chunk));
  const closed = new Promise((resolve) => socket.on('close', resolve));
  const bytes = Buffer.from(preface);
  bytes[23] = 0x0b;
  socket.write(bytes);
  await closed;
  expect(Buffer.concat(chunks).at(3)).toBe(types.settings);
});
