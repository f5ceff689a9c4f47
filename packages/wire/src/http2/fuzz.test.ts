import { Duplex } from 'node:stream';
import type { Socket } from 'node:net';
import { systemClock } from '@millrace/kit/clock';
import { PeerMemory, peerMemoryLimits } from '@millrace/kit/peer-memory';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  callFrames,
  callHeaders,
  emptySettings,
  frame,
  framesOf,
  number32,
  preface,
  rstStream,
} from '../grpc/frames.test-support.js';
import { framed } from '../grpc/transport.test-support.js';
import { chunksOf, ConnectionMemory, DeferredFlush } from '../base/socket.js';
import { Http2Connection } from './connection.js';
import { FrameWriter, type StreamUser, type Http2Stream } from './stream.js';
import { HeaderList } from './hpack.js';
import { frameTypes as types } from './frames.js';

const hello = framed(Buffer.from('hello'));
const answer = new HeaderList({ ':status': '200' });

/** A connection without a network: the test supplies the bytes and sees exceptions. */
class Session {
  readonly #written: Buffer[] = [];
  readonly open = new Set<Http2Stream>();
  readonly socket = new Duplex({
    read: () => undefined,
    write: (chunk: Buffer, _encoding, done) => {
      this.#written.push(chunk);
      done();
    },
  });
  readonly connection = new Http2Connection(chunksOf(this.socket as unknown as Socket), {
    clock: systemClock,
    writer: new FrameWriter(),
    turn: new DeferredFlush(),
    memory: new ConnectionMemory(new PeerMemory(peerMemoryLimits())),
    open: (stream) => this.#response(stream),
  });

  feed(bytes: Uint8Array): void {
    if (!this.socket.destroyed) this.socket.emit('data', Buffer.from(bytes));
  }

  /** Ends it, and answers what the server said. */
  async end(): Promise<Buffer> {
    await new Promise(setImmediate);
    this.socket.destroy();
    await new Promise(setImmediate);
    return Buffer.concat(this.#written);
  }

  #response(stream: Http2Stream): StreamUser {
    this.open.add(stream);
    return {
      takeBytes: (_bytes, start, end) => {
        if ((end - start) % 3 === 0) stream.pause();
        if ((end - start) % 7 === 0) stream.reset('CANCEL');
      },
      takeEnd: () => {
        stream.respond(answer);
        stream.end();
      },
      takeClose: () => void this.open.delete(stream),
      isExemptFromReadRate: false,
      checkTimeouts: () => stream.resume(),
    };
  }
}

/** Frames that are as they should be, most of them. */
const anyFrame = fc.oneof(
  fc.nat(20).map((n) => callFrames(2 * n + 1, '/t.T/Echo', hello)),
  fc.nat(20).map((n) => frame(types.headers, 4, 2 * n + 1, callHeaders('/t.T/Chat'))),
  fc
    .tuple(fc.nat(20), fc.nat(40), fc.nat(15))
    .map(([n, size, flag]) => frame(types.data, flag, 2 * n + 1, Buffer.alloc(size, 1))),
  fc.nat(20).map((n) => rstStream(2 * n + 1, 8)),
  fc
    .tuple(fc.nat(20), fc.nat())
    .map(([n, more]) => frame(types.windowUpdate, 0, n, number32(more))),
  fc.constant(emptySettings),
  fc.constant(frame(types.ping, 0, 0, Buffer.alloc(8))),
  fc
    .tuple(fc.nat(12), fc.nat(255), fc.nat(30), fc.uint8Array({ maxLength: 60 }))
    .map(([type, flag, stream, payload]) => frame(type, flag, stream, payload)),
);

/** Cuts bytes into chunks of these lengths. */
function feedCut(session: Session, bytes: Buffer, cuts: readonly number[]): void {
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const length = (cuts[i % cuts.length] ?? 0) + 1;
    session.feed(bytes.subarray(at, at + length));
    at += length;
  }
}

async function expectWhole(session: Session): Promise<void> {
  session.connection.checkTimeouts(0);
  const said = await session.end();
  const length = framesOf(said).reduce((sum, { payload }) => sum + 9 + payload.length, 0);
  expect(length).toBe(said.length);
  expect(session.open.size).toBe(0);
}

test('fuzz: random bytes after the preface neither throw nor leak', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 2_000 }), async (bytes) => {
      const session = new Session();
      session.feed(Buffer.concat([preface, emptySettings]));
      session.feed(bytes);
      await expectWhole(session);
    }),
    { numRuns: 500 },
  );
});

test('fuzz: random frames in random chunks neither throw nor leak', async () => {
  const cuts = fc.array(fc.nat({ max: 200 }), { minLength: 1, maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(fc.array(anyFrame, { maxLength: 40 }), cuts, async (frames, pieces) => {
      const session = new Session();
      feedCut(session, Buffer.concat([preface, emptySettings, ...frames]), pieces);
      await expectWhole(session);
    }),
    { numRuns: 1_000 },
  );
});

test('fuzz: mutated valid sessions neither throw nor leak', async () => {
  const change = fc.tuple(fc.nat(), fc.nat(255));
  const good = Buffer.concat([
    preface,
    emptySettings,
    ...Array.from({ length: 8 }, (_, n) => callFrames(2 * n + 1, '/t.T/Echo', hello)),
  ]);
  await fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 6 }), fc.nat(300), async (changes, cut) => {
      const bytes = Buffer.from(good);
      for (const [at, value] of changes) bytes[at % bytes.length] = value;
      const session = new Session();
      feedCut(session, bytes, [cut]);
      await expectWhole(session);
    }),
    { numRuns: 1_000 },
  );
});

test('a valid session gives the same responses however it is split', async () => {
  const good = Buffer.concat([
    preface,
    emptySettings,
    callFrames(1, '/t.T/Echo', hello),
    callFrames(3, '/t.T/Echo', hello),
  ]);
  const answers = new Set<string>();
  for (let at = 1; at < good.length; at++) {
    const session = new Session();
    session.feed(good.subarray(0, at));
    session.feed(good.subarray(at));
    answers.add((await session.end()).toString('hex'));
  }
  expect(answers.size).toBe(1);
});
