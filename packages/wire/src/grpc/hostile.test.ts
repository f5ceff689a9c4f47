import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  callFrames,
  callHeaders,
  emptySettings,
  endHeaders,
  endStream,
  frame,
  framesOf,
  frameTypes,
  headerBlock,
  number32,
  preface,
  rstStream,
  type Frame,
} from './frames.test-support.js';
import {
  framed,
  openSession,
  rawCall,
  startTransport,
  type TestTransport,
} from './transport.test-support.js';

describe('transport', () => {
  const hello = framed(Buffer.from('hello'));
  let server: TestTransport;

  beforeAll(async () => {
    server = await startTransport();
  });
  afterAll(() => server.close());

  /** A whole conversation that begins as it should. */
  const opening = Buffer.concat([preface, emptySettings]);
  const serverPreface = Buffer.concat([opening, callFrames(1, '/t.T/Echo', hello)]);

  /** All frames that the server sends until it hangs up, or until `isEnough`. */
  function received(socket: Socket, isEnough: (frames: Frame[]) => boolean): Promise<Frame[]> {
    let bytes = Buffer.alloc(0);
    return new Promise((resolve) => {
      socket.on('data', (chunk: Buffer) => {
        bytes = Buffer.concat([bytes, chunk]);
        if (isEnough(framesOf(bytes))) resolve(framesOf(bytes));
      });
      socket.on('close', () => resolve(framesOf(bytes)));
    });
  }

  /** Resolves when the server hangs up, or says that it is done with the connection. */
  async function cutOff(socket: Socket): Promise<void> {
    await received(socket, (frames) => frames.some(({ type }) => type === frameTypes.goaway));
    socket.destroy();
  }

  function closed(socket: Socket): Promise<void> {
    return new Promise((resolve) => socket.resume().on('close', resolve));
  }

  const hasEnded = (frames: Frame[]) =>
    frames.some(({ type, flags }) => type === frameTypes.headers && (flags & endStream) !== 0);

  async function expectWell(): Promise<void> {
    const session = openSession(server.url);
    expect((await rawCall(session, '/t.T/Echo', hello)).body).toEqual(hello);
    session.destroy();
  }

  test('input may arrive byte by byte', async () => {
    const socket = await server.dial();
    socket.setNoDelay(true);
    const respond = received(socket, hasEnded);
    for (const byte of serverPreface) {
      socket.write(Buffer.of(byte));
      await new Promise(setImmediate);
    }
    const data = (await respond).filter(({ type }) => type === frameTypes.data);
    expect(data.map(({ payload }) => payload)).toEqual([hello]);
    socket.destroy();
  });

  test('a connection closed at any byte leaks nothing', async () => {
    const held = Buffer.concat([opening, callFrames(1, '/t.T/Hold', hello)]);
    for (const bytes of [serverPreface, held]) {
      for (let length = 0; length <= bytes.length; length += 3) {
        const socket = await server.dial();
        socket.write(bytes.subarray(0, length));
        await new Promise(setImmediate);
        if (length % 2 === 0) socket.resetAndDestroy();
        else socket.end();
        await closed(socket);
      }
    }
    await expectWell();
    await expect.poll(() => server.aborted.length).toBe(server.held.length);
  });

  test('a connection that does not start with the HTTP/2 preface is closed', async () => {
    const garbage = Buffer.from(Array.from({ length: 4_096 }, (_, n) => (n * 7_919) % 251));
    for (const bytes of [
      garbage,
      Buffer.from('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'),
      Buffer.concat([preface, garbage]),
      Buffer.concat([serverPreface, garbage]),
    ]) {
      const socket = await server.dial();
      socket.write(bytes);
      await cutOff(socket);
    }
    await expectWell();
  });

  const nothing = Buffer.alloc(0);
  const broken: [what: string, bytes: Buffer][] = [
    ['data on stream 0', frame(frameTypes.data, 0, 0, hello)],
    ['data on a stream that is not open', frame(frameTypes.data, 0, 7, hello)],
    ['an even stream', callFrames(2, '/t.T/Echo', hello)],
    ['a ping that is too short', frame(frameTypes.ping, 0, 0, Buffer.alloc(3))],
    ['settings of half an entry', frame(frameTypes.settings, 0, 0, Buffer.alloc(5))],
    ['settings on a stream', frame(frameTypes.settings, 0, 1, nothing)],
    ['a window of nothing', frame(frameTypes.windowUpdate, 0, 0, number32(0))],
    ['a window without end', frame(frameTypes.windowUpdate, 0, 0, number32(0x7fffffff))],
    ['a continuation of nothing', frame(frameTypes.continuation, endHeaders, 1, nothing)],
    [
      'headers that cannot be decoded',
      frame(frameTypes.headers, endHeaders, 1, Buffer.of(0xff, 0xff)),
    ],
    ['headers without a method', frame(frameTypes.headers, 5, 1, headerBlock({ ':path': '/' }))],
    [
      'a te but trailers',
      frame(frameTypes.headers, 5, 1, callHeaders('/t.T/Echo', { te: 'gzip' })),
    ],
    ['an upper-case name', frame(frameTypes.headers, 5, 1, callHeaders('/t.T/Echo', { Key: 'x' }))],
    ['an end by error', frame(frameTypes.goaway, 0, 0, Buffer.concat([number32(0), number32(2)]))],
    ['a frame of an unknown type', frame(0xee, 0xff, 1, hello)],
  ];

  test.each(broken)('%s does not affect other clients', async (_what, bytes) => {
    const socket = await server.dial();
    socket.write(Buffer.concat([opening, bytes]));
    socket.write(callFrames(9, '/t.T/Echo', hello));
    const isAnswer = ({ type, stream }: Frame) => stream > 0 || type === frameTypes.goaway;
    await received(socket, (frames) => frames.some(isAnswer));
    socket.destroy();
    await expectWell();
  });

  test('a call opened and reset in one packet does not affect other clients', async () => {
    for (let code = 0; code < 15; code++) {
      const socket = await server.dial();
      const open = frame(frameTypes.headers, endHeaders, 1, callHeaders('/t.T/Chat'));
      const start = frame(frameTypes.data, 0, 1, hello);
      socket.write(Buffer.concat([opening, open, rstStream(1, code), rstStream(1, code)]));
      const again = frame(frameTypes.headers, endHeaders, 3, callHeaders('/t.T/Hold'));
      socket.write(Buffer.concat([again, frame(0, 1, 3, hello), rstStream(3, code)]));
      const chat = frame(frameTypes.headers, endHeaders, 5, callHeaders('/t.T/Chat'));
      socket.write(Buffer.concat([chat, frame(0, 0, 5, start), rstStream(5, code)]));
      socket.end();
      await closed(socket);
    }
    await expectWell();
  });

  test('rapid reset: the connection is closed', async () => {
    const socket = await server.dial();
    const cut = cutOff(socket);
    socket.write(opening);
    for (let n = 0; n < 20_000 && !socket.destroyed; n++) {
      const id = 2 * n + 1;
      const open = frame(frameTypes.headers, endHeaders, id, callHeaders('/t.T/Hold'));
      socket.write(Buffer.concat([open, rstStream(id, 8)]));
      if (n % 100 === 0) await new Promise(setImmediate);
    }
    await cut;
    await expectWell();
  });

  test('endless CONTINUATION frames are rejected', async () => {
    const session = openSession(server.url);
    await once(session, 'remoteSettings');
    await rawCall(session, '/t.T/Echo', hello);
    const big = await rawCall(session, '/t.T/Echo', hello, { 'x-long': 'x'.repeat(60_000) });
    expect(big.status).toBeUndefined();
    expect(big.rstCode).not.toBe(0);
    session.destroy();
    const socket = await server.dial();
    const cut = cutOff(socket);
    socket.write(opening);
    socket.write(frame(frameTypes.headers, 0, 1, callHeaders('/t.T/Echo')));
    const more = frame(frameTypes.continuation, 0, 1, headerBlock({ a: 'b' }));
    for (let n = 0; n < 20_000 && !socket.destroyed; n++) socket.write(more);
    await cut;
    await expectWell();
  });

  test('randomly changed bytes do not affect other clients', async () => {
    let seed = 42;
    const random = (below: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return Math.floor((seed / 2_147_483_648) * below);
    };
    const whole = Buffer.concat([
      serverPreface,
      callFrames(3, '/t.T/Chat', hello),
      rstStream(5, 0),
    ]);
    await Promise.all(
      Array.from({ length: 200 }, async () => {
        const bytes = Buffer.from(whole);
        for (let n = 0; n <= random(4); n++) bytes[24 + random(bytes.length - 24)] = random(256);
        const socket = await server.dial();
        socket.resume().write(bytes);
        await new Promise((resolve) => setTimeout(resolve, 100));
        socket.destroy();
      }),
    );
    await expectWell();
  });

  test('1,000 idle connections stay open and close with the server', async () => {
    const own = await startTransport();
    const sockets: Socket[] = [];
    // More at once than the system lets wait would be turned away now and then.
    while (sockets.length < 1_000) {
      sockets.push(...(await Promise.all(Array.from({ length: 100 }, () => own.dial()))));
    }
    for (const socket of sockets.slice(0, 500)) socket.write(preface.subarray(0, 10));
    const session = openSession(own.url);
    expect((await rawCall(session, '/t.T/Echo', hello)).status).toBe('0');
    const ends = Promise.all(sockets.map(closed));
    const closing = new AbortController();
    setTimeout(() => closing.abort(), 200);
    await own.close(closing.signal);
    await ends;
  });
});
