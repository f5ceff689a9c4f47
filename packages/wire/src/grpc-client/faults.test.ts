import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { systemClock, type Clock } from '@millrace/kit/clock';
import { afterEach, expect, test } from 'vitest';
import {
  ack,
  emptySettings,
  endHeaders,
  endStream,
  frame,
  framesOf,
  frameTypes,
  headerBlock,
  number32,
  rstStream,
  type Frame,
} from '../grpc/frames.test-support.js';
import { ManualClock } from '../grpc/manual-clock.test-support.js';
import { grpcCodes, type GrpcCode } from '../base/messages.js';
import { framed } from '../grpc/transport.test-support.js';
import { Channel } from './channel.js';

const prefaceBytes = 24;
const closing: (() => void)[] = [];

afterEach(() => {
  for (const close of closing.splice(0)) close();
});

interface Accepted {
  readonly socket: Socket;
  readonly frames: () => Frame[];
  /** IDs of the streams that were opened. */
  readonly streams: () => number[];
}

/** A server that sends only what the test says, after its SETTINGS. */
class RawServer {
  readonly accepted: Accepted[] = [];

  private constructor(
    readonly server: Server,
    private readonly first: Buffer,
  ) {
    server.on('connection', (socket) => this.#take(socket));
  }

  static async start(first: Buffer = emptySettings): Promise<RawServer> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const raw = new RawServer(server, first);
    closing.push(() => {
      for (const { socket } of raw.accepted) socket.destroy();
      server.close();
    });
    return raw;
  }

  channel(clock: Clock = systemClock): Channel {
    const { port } = this.server.address() as AddressInfo;
    const place = { host: '127.0.0.1', port };
    const channel = new Channel({ place, clock, maxMessageBytes: 1_000_000 });
    closing.push(() => channel.close());
    return channel;
  }

  /** The connection, when it has that many streams. */
  async opened(connection: number, streams: number): Promise<Accepted> {
    const count = () => this.accepted[connection]?.streams().length ?? 0;
    await expect.poll(count).toBe(streams);
    return this.accepted[connection]!;
  }

  #take(socket: Socket): void {
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => void chunks.push(chunk));
    socket.on('error', () => undefined);
    const frames = () => framesOf(Buffer.concat(chunks).subarray(prefaceBytes));
    const streams = () => frames().flatMap(({ type, stream }) => (type === 1 ? [stream] : []));
    this.accepted.push({ socket, frames, streams });
    socket.write(this.first);
  }
}

const one = framed(Buffer.of(1));
const responseHeaders = { ':status': '200', 'content-type': 'application/grpc' };

function headers(stream: number, fields: Record<string, string>, flags = 0): Buffer {
  return frame(frameTypes.headers, endHeaders | flags, stream, headerBlock(fields));
}

function answer(stream: number, message: Buffer): Buffer {
  return Buffer.concat([
    headers(stream, responseHeaders),
    frame(frameTypes.data, 0, stream, framed(message)),
    headers(stream, { 'grpc-status': '0' }, endStream),
  ]);
}

function goaway(lastStream: number): Buffer {
  const payload = Buffer.concat([number32(lastStream), number32(0), Buffer.from('bye')]);
  return frame(frameTypes.goaway, 0, 0, payload);
}

function failsWith(call: Promise<unknown>, code: GrpcCode, details: string | RegExp = '') {
  return expect(call).rejects.toMatchObject({
    code: grpcCodes[code],
    details: expect.stringMatching(details),
  });
}

test('connection: a lost one fails open calls, and the next call opens another', async () => {
  const server = await RawServer.start();
  const channel = server.channel();
  const lost = channel.unary('/t.T/Echo', one);
  (await server.opened(0, 1)).socket.destroy();
  await failsWith(lost, 'UNAVAILABLE');
  const next = channel.unary('/t.T/Echo', one);
  (await server.opened(1, 1)).socket.write(answer(1, Buffer.of(9)));
  expect(await next).toEqual(Buffer.of(9));
});

test('connection: GOAWAY fails later streams, completes earlier ones and moves new calls', async () => {
  const server = await RawServer.start();
  const channel = server.channel();
  const [early, late] = [channel.unary('/t.T/Echo', one), channel.unary('/t.T/Echo', one)];
  const { socket } = await server.opened(0, 2);
  socket.write(goaway(1));
  await failsWith(late, 'UNAVAILABLE', /GOAWAY .*: bye/);
  const next = channel.unary('/t.T/Echo', one);
  (await server.opened(1, 1)).socket.write(answer(1, Buffer.of(2)));
  expect(await next).toEqual(Buffer.of(2));
  socket.write(answer(1, Buffer.of(1)));
  expect(await early).toEqual(Buffer.of(1));
  await expect.poll(() => socket.destroyed).toBe(true);
});

test('connection: waits for SETTINGS and respects the stream limit', async () => {
  const limit = Buffer.from([0, 3, 0, 0, 0, 1]);
  const server = await RawServer.start(Buffer.alloc(0));
  const channel = server.channel();
  const calls = Array.from({ length: 20 }, () => channel.unary('/t.T/Echo', one));
  for (const [n, call] of calls.entries()) {
    call.catch(() => undefined);
    if (n > 7) continue;
    await expect.poll(() => server.accepted.length).toBe(n + 1);
    const { socket, streams } = server.accepted[n]!;
    expect(streams()).toEqual([]);
    socket.write(frame(frameTypes.settings, 0, 0, limit));
    await server.opened(n, 1);
  }
  // Eight connections with one stream each; the others wait for a stream to end.
  const { socket } = server.accepted[0]!;
  socket.write(answer(1, Buffer.of(1)));
  expect(await calls[0]).toEqual(Buffer.of(1));
  await server.opened(0, 2);
  expect(server.accepted).toHaveLength(8);
});

test('keepalive: PING on silence, and the connection is closed without an acknowledgement', async () => {
  const clock = new ManualClock();
  const server = await RawServer.start();
  const channel = server.channel(clock);
  const call = channel.unary('/t.T/Hold', one);
  const { socket, frames } = await server.opened(0, 1);
  const pings = () => frames().filter(({ type }) => type === frameTypes.ping).length;
  // SETTINGS have arrived in the first interval.
  clock.advance(20_000);
  clock.advance(20_000);
  await expect.poll(pings).toBe(1);
  const isRead = channel.unary('/t.T/Echo', one);
  socket.write(Buffer.concat([frame(frameTypes.ping, ack, 0, Buffer.alloc(8)), answer(3, one)]));
  await isRead;
  clock.advance(10_000);
  clock.advance(20_000);
  await expect.poll(pings).toBe(2);
  clock.advance(10_000);
  await failsWith(call, 'UNAVAILABLE', 'keepalive timeout');
});

test('connection: a server that sends no SETTINGS fails the calls after 10 s', async () => {
  const clock = new ManualClock();
  const server = await RawServer.start(Buffer.alloc(0));
  const call = server.channel(clock).unary('/t.T/Echo', one);
  await expect.poll(() => server.accepted.length).toBe(1);
  await expect.poll(() => server.accepted[0]!.frames().length).toBe(2);
  clock.advance(10_000);
  await failsWith(call, 'UNAVAILABLE', 'no connection within 10000 ms');
});

test('connection: bytes that are not HTTP/2 fail the calls', async () => {
  const server = await RawServer.start(Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'));
  await failsWith(server.channel().unary('/t.T/Echo', one), 'UNAVAILABLE', /broke HTTP\/2/);
});

test('connection: a server that hangs up unasked may expect TLS', async () => {
  const server = await RawServer.start(Buffer.alloc(0));
  const call = server.channel().unary('/t.T/Echo', one);
  await expect.poll(() => server.accepted.length).toBe(1);
  server.accepted[0]!.socket.end();
  await failsWith(call, 'UNAVAILABLE', /closed without an answer. Perhaps the server expects TLS/);
});

test.each<[string, Buffer, GrpcCode]>([
  ['a refused stream', rstStream(1, 7), 'UNAVAILABLE'],
  ['a cancelled stream', rstStream(1, 8), 'CANCELLED'],
  ['ENHANCE_YOUR_CALM', rstStream(1, 11), 'RESOURCE_EXHAUSTED'],
  ['INADEQUATE_SECURITY', rstStream(1, 12), 'PERMISSION_DENIED'],
  ['any other reset', rstStream(1, 2), 'INTERNAL'],
  ['HTTP 503', headers(1, { ':status': '503' }, endStream), 'UNAVAILABLE'],
  [
    'HTTP 404 with a body',
    Buffer.concat([
      headers(1, { ':status': '404' }),
      frame(frameTypes.data, endStream, 1, Buffer.from('no')),
    ]),
    'UNIMPLEMENTED',
  ],
  ['no grpc-status', headers(1, responseHeaders, endStream), 'UNKNOWN'],
  ['data without headers', frame(frameTypes.data, endStream, 1, one), 'UNKNOWN'],
  ['no message', headers(1, { ...responseHeaders, 'grpc-status': '0' }, endStream), 'INTERNAL'],
  [
    'a partial message',
    Buffer.concat([
      headers(1, responseHeaders),
      frame(frameTypes.data, 0, 1, one.subarray(0, 5)),
      headers(1, { 'grpc-status': '0' }, endStream),
    ]),
    'INTERNAL',
  ],
  [
    'a compressed message',
    Buffer.concat([
      headers(1, responseHeaders),
      frame(frameTypes.data, 0, 1, framed(Buffer.of(1), 1)),
    ]),
    'INTERNAL',
  ],
  ['a stream that was not opened', headers(3, responseHeaders), 'UNAVAILABLE'],
])('response: %s fails the call', async (_, bytes, code) => {
  const server = await RawServer.start();
  const call = server.channel().unary('/t.T/Echo', one);
  (await server.opened(0, 1)).socket.write(bytes);
  await failsWith(call, code);
});
