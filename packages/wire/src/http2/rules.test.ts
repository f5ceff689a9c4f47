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
import { startTransport, type TestTransport } from '../grpc/transport.test-support.js';
import {
  call,
  data,
  echo,
  hello,
  open,
  RawPeer,
  set,
  settingsPayload,
  whole,
} from './peer.test-support.js';
import { errorCodes, flags, frameTypes as types, settings, type ErrorName } from './frames.js';

const nothing = Buffer.alloc(0);
const { endStream, endHeaders, padded, priority, ack } = flags;

let server: TestTransport;
beforeAll(async () => {
  server = await startTransport();
});
afterAll(() => server.close());

const without = (name: string) => {
  const fields: Record<string, string> = {
    ':method': 'POST',
    ':scheme': 'http',
    ':path': '/t.T/Echo',
    'content-type': 'application/grpc',
  };
  delete fields[name];
  return headerBlock(fields);
};
const twice = (name: string, value: string) =>
  Buffer.concat([headerBlock({ [name]: value }), echo()]);
const long = { length: 'x'.repeat(100) };

const wrong: [what: string, code: ErrorName, bytes: Buffer[]][] = [
  ['no method', 'PROTOCOL_ERROR', [whole(1, without(':method'))]],
  ['no scheme', 'PROTOCOL_ERROR', [whole(1, without(':scheme'))]],
  ['no path', 'PROTOCOL_ERROR', [whole(1, without(':path'))]],
  ['an empty path', 'PROTOCOL_ERROR', [whole(1, echo({ ':path': '' }))]],
  ['a path that is none', 'PROTOCOL_ERROR', [whole(1, echo({ ':path': 'x' }))]],
  ['two methods', 'PROTOCOL_ERROR', [whole(1, twice(':method', 'POST'))]],
  ['two paths', 'PROTOCOL_ERROR', [whole(1, twice(':path', '/'))]],
  ['a pseudo-field after others', 'PROTOCOL_ERROR', [whole(1, twice('x-first', 'y'))]],
  ['a pseudo-field that none is', 'PROTOCOL_ERROR', [whole(1, twice(':protocol', 'y'))]],
  ['a status', 'PROTOCOL_ERROR', [whole(1, twice(':status', '200'))]],
  ['capitals in a name', 'PROTOCOL_ERROR', [whole(1, echo({ 'X-Key': 'y' }))]],
  ['a blank in a name', 'PROTOCOL_ERROR', [whole(1, echo({ 'x key': 'y' }))]],
  ['a name of nothing', 'PROTOCOL_ERROR', [whole(1, echo({ '': 'y' }))]],
  ['a line break in a value', 'PROTOCOL_ERROR', [whole(1, echo({ x: 'a\r\nb: c' }))]],
  ['a NUL in a value', 'PROTOCOL_ERROR', [whole(1, echo({ x: 'a\0b' }))]],
  ['a blank before a value', 'PROTOCOL_ERROR', [whole(1, echo({ x: ' a' }))]],
  ['a blank after a value', 'PROTOCOL_ERROR', [whole(1, echo({ x: 'a\t' }))]],
  ['connection', 'PROTOCOL_ERROR', [whole(1, echo({ connection: 'close' }))]],
  ['keep-alive', 'PROTOCOL_ERROR', [whole(1, echo({ 'keep-alive': '1' }))]],
  ['proxy-connection', 'PROTOCOL_ERROR', [whole(1, echo({ 'proxy-connection': '1' }))]],
  ['transfer-encoding', 'PROTOCOL_ERROR', [whole(1, echo({ 'transfer-encoding': 'chunked' }))]],
  ['upgrade', 'PROTOCOL_ERROR', [whole(1, echo({ upgrade: 'h2c' }))]],
  ['a te but trailers', 'PROTOCOL_ERROR', [whole(1, echo({ te: 'gzip' }))]],
  ['a length that is none', 'PROTOCOL_ERROR', [whole(1, echo({ 'content-length': '-1' }))]],
  ['a length without a body', 'PROTOCOL_ERROR', [whole(1, echo({ 'content-length': '10' }))]],
  [
    'two lengths',
    'PROTOCOL_ERROR',
    [
      whole(
        1,
        Buffer.concat([echo({ 'content-length': '0' }), headerBlock({ 'content-length': '1' })]),
      ),
    ],
  ],
  [
    'more than the length',
    'PROTOCOL_ERROR',
    [open(1, echo({ 'content-length': '9' })), data(1, hello)],
  ],
  [
    'less than the length',
    'PROTOCOL_ERROR',
    [open(1, echo({ 'content-length': '11' })), data(1, hello, endStream)],
  ],
  [
    'less than the length, then trailers',
    'PROTOCOL_ERROR',
    [open(1, echo({ 'content-length': '11' })), data(1), whole(1, headerBlock({ x: 'y' }))],
  ],
  ['trailers that do not end', 'PROTOCOL_ERROR', [open(1), open(1, headerBlock({ x: 'y' }))]],
  ['trailers with a path', 'PROTOCOL_ERROR', [open(1), whole(1, headerBlock({ ':path': '/' }))]],
  ['connect with a path', 'PROTOCOL_ERROR', [whole(1, echo({ ':method': 'CONNECT' }))]],
  ['data after the end', 'STREAM_CLOSED', [hold(1), data(1)]],
  ['headers after the end', 'STREAM_CLOSED', [hold(1), whole(1, headerBlock({ x: 'y' }))]],
  ['a window that grows by nothing', 'PROTOCOL_ERROR', [hold(1), frame(8, 0, 1, number32(0))]],
  [
    'a window that grows too far',
    'FLOW_CONTROL_ERROR',
    [hold(1), frame(8, 0, 1, number32(2 ** 31 - 1))],
  ],
  ['a priority of 4 bytes', 'FRAME_SIZE_ERROR', [hold(1), frame(2, 0, 1, Buffer.alloc(4))]],
  [
    'more than 64 fields',
    'ENHANCE_YOUR_CALM',
    [whole(1, echo(Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`x${n}`, '']))))],
  ],
  [
    'more than 16 KiB of headers',
    'ENHANCE_YOUR_CALM',
    [
      whole(
        1,
        // Named again and again in one byte: little is sent, and much is meant.
        Buffer.concat([
          echo(),
          Buffer.of(0x40, 1, 0x78, 100),
          Buffer.from(long.length),
          Buffer.alloc(2_000, 0xbe),
        ]),
      ),
    ],
  ],
];

function hold(id: number): Buffer {
  return callFrames(id, '/t.T/Hold', hello);
}

test.each(wrong)('%s resets only its stream, with %s', async (_what, code, bytes) => {
  const peer = await RawPeer.dial(server);
  peer.send(emptySettings, ...bytes);
  expect(await peer.rst(1)).toBe(errorCodes[code]);
  peer.send(call(3));
  await peer.until(() => peer.hasEnded(3));
  expect(peer.data(3)).toEqual(hello);
  peer.socket.destroy();
});

const allowed: [what: string, bytes: Buffer[]][] = [
  ['a frame of an unknown type', [frame(0xee, 0xff, 1, hello), frame(0xee, 0, 0, hello), call(1)]],
  ['an update of priorities', [frame(0x10, 0, 0, Buffer.concat([number32(1), hello])), call(1)]],
  ['a priority of an idle stream', [frame(2, 0, 11, Buffer.alloc(5)), call(1)]],
  [
    'a priority in headers',
    [
      frame(1, endHeaders | priority, 1, Buffer.concat([Buffer.alloc(5), echo()])),
      data(1, hello, endStream),
    ],
  ],
  [
    'padding',
    [
      frame(1, endHeaders | padded, 1, Buffer.concat([Buffer.of(7), echo(), Buffer.alloc(7)])),
      data(1, Buffer.concat([Buffer.of(2), hello, Buffer.alloc(2)]), padded),
      data(1, Buffer.of(0), padded | endStream),
    ],
  ],
  [
    'headers in many pieces',
    [
      frame(1, 0, 1, echo().subarray(0, 1)),
      ...[...echo().subarray(1, 30)].map((byte) => frame(9, 0, 1, Buffer.of(byte))),
      frame(9, endHeaders, 1, echo().subarray(30)),
      data(1, hello, endStream),
    ],
  ],
  ['trailers', [open(1), data(1), whole(1, headerBlock({ 'x-checksum': '1' }))]],
  ['an end in a frame of its own', [open(1), data(1), data(1, nothing, endStream)]],
  [
    'the length that it has',
    [open(1, echo({ 'content-length': '10' })), data(1, hello, endStream)],
  ],
  [
    'cookies in crumbs',
    [
      open(1, Buffer.concat([echo({ cookie: 'a=b' }), headerBlock({ cookie: 'c=d' })])),
      data(1, hello, endStream),
    ],
  ],
  ['unknown settings', [set(0xffff, 7), call(1)]],
  ['an unexpected SETTINGS acknowledgement', [frame(types.settings, ack, 0, nothing), call(1)]],
  ['the reserved bit', [call(1).fill(0x80, 5, 6)]],
  ['a window of a stream that is closed', [hold(1), rstStream(1, 8), frame(8, 0, 1, number32(5))]],
];

test.each(allowed)('%s is allowed', async (_what, bytes) => {
  const peer = await RawPeer.dial(server);
  peer.send(emptySettings, ...bytes, call(21));
  await peer.until(() => peer.hasEnded(21) || peer.isClosed);
  expect(peer.data(21)).toEqual(hello);
  expect(peer.of(types.rstStream)).toEqual([]);
  peer.socket.destroy();
});

test.each([
  ['more', '9'],
  ['less', '11'],
])('a body of %s bytes than content-length is refused after an early answer', async (_, length) => {
  const peer = await RawPeer.dial(server);
  peer.send(emptySettings, open(1, callHeaders('/t.T/None', { 'content-length': length })));
  await peer.until(() => peer.hasEnded(1));
  peer.send(data(1, hello, endStream));
  expect(await peer.rst(1)).toBe(errorCodes.PROTOCOL_ERROR);
  peer.socket.destroy();
});

test('frames sent before the peer received RST_STREAM are ignored', async () => {
  const peer = await RawPeer.dial(server);
  // The method is none, so that the answer comes before the request.
  peer.send(emptySettings, open(1, callHeaders('/t.T/None')));
  await peer.until(() => peer.hasEnded(1));
  expect(peer.of(types.rstStream)).toEqual([]);
  peer.send(data(1));
  expect(await peer.rst(1)).toBe(errorCodes.NO_ERROR);
  peer.send(data(1), data(1, hello, endStream), whole(1, headerBlock({ x: 'y' })), call(3));
  await peer.until(() => peer.hasEnded(3));
  expect(peer.of(types.rstStream)).toHaveLength(1);
  peer.socket.destroy();
});

test('a closed stream rejects further frames', async () => {
  const peer = await RawPeer.dial(server);
  peer.send(emptySettings, call(1));
  await peer.until(() => peer.hasEnded(1));
  peer.send(data(1));
  expect(await peer.rst(1)).toBe(errorCodes.STREAM_CLOSED);
  const other = await RawPeer.dial(server);
  other.send(emptySettings, call(1));
  await other.until(() => other.hasEnded(1));
  other.send(whole(1));
  expect(await other.goaway()).toBe(errorCodes.STREAM_CLOSED);
  peer.socket.destroy();
});

test('PING: the acknowledgement has the same payload', async () => {
  const peer = await RawPeer.dial(server);
  peer.send(emptySettings, frame(types.ping, 0, 0, Buffer.from('12345678')));
  await peer.until(() => peer.of(types.ping).length > 0);
  expect(peer.of(types.ping)).toMatchObject([{ flags: ack, payload: Buffer.from('12345678') }]);
  peer.socket.destroy();
});

test('SETTINGS are exchanged and acknowledged', async () => {
  const peer = await RawPeer.dial(server);
  peer.send(emptySettings);
  await peer.until(() => peer.frames.length > 2);
  const [first, second, third] = peer.frames;
  const expected = settingsPayload(
    { name: settings.maxConcurrentStreams, value: 1_000 },
    { name: settings.initialWindowSize, value: 1024 * 1024 },
    { name: settings.maxHeaderListSize, value: 16 * 1024 },
  );
  expect(first).toMatchObject({ type: types.settings, flags: 0, payload: expected });
  expect(second).toMatchObject({ type: types.windowUpdate, stream: 0 });
  expect(third).toMatchObject({ type: types.settings, flags: ack, payload: nothing });
  peer.socket.destroy();
});

test('HPACK: a peer with a smaller table gets one table size update', async () => {
  const peer = await RawPeer.dial(server);
  peer.send(emptySettings, call(1));
  await peer.until(() => peer.hasEnded(1));
  peer.send(set(settings.headerTableSize, 0), call(3), call(5));
  await peer.until(() => peer.hasEnded(3) && peer.hasEnded(5));
  const firstBytes = peer.of(types.headers).map(({ payload }) => payload[0]);
  expect(firstBytes.filter((byte) => byte === 0x20)).toHaveLength(1);
  expect(firstBytes.indexOf(0x20)).toBe(2);
  peer.socket.destroy();
});

test('WINDOW_UPDATE: an overflow on one stream resets it with FLOW_CONTROL_ERROR', async () => {
  const addWindow = (id: number) => frame(types.windowUpdate, 0, id, number32(2 ** 31 - 1));
  const peer = await RawPeer.dial(server);
  peer.send(emptySettings, open(1), addWindow(1), addWindow(1));
  expect(await peer.rst(1)).toBe(errorCodes.FLOW_CONTROL_ERROR);
  // Also when its response is complete before its request is.
  peer.send(open(3, callHeaders('/t.T/None')));
  await peer.until(() => peer.hasEnded(3));
  peer.send(addWindow(3), addWindow(3));
  expect(await peer.rst(3)).toBe(errorCodes.FLOW_CONTROL_ERROR);
  peer.send(call(5));
  await peer.until(() => peer.hasEnded(5));
  peer.socket.destroy();
});

test('PRIORITY: a stream that depends on itself is reset with PROTOCOL_ERROR', async () => {
  const onItself = (id: number) => Buffer.concat([number32(id), Buffer.of(255)]);
  const peer = await RawPeer.dial(server);
  peer.send(emptySettings, frame(types.priority, 0, 1, onItself(1)));
  expect(await peer.rst(1)).toBe(errorCodes.PROTOCOL_ERROR);
  const block = Buffer.concat([onItself(3), echo()]);
  peer.send(frame(types.headers, endHeaders | endStream | priority, 3, block));
  expect(await peer.rst(3)).toBe(errorCodes.PROTOCOL_ERROR);
  peer.send(call(5));
  await peer.until(() => peer.hasEnded(5));
  peer.socket.destroy();
});
