import { Duplex } from 'node:stream';
import { systemClock } from '../../packages/kit/dist/base/clock-and-random.js';
import { PeerMemory, peerMemoryLimits } from '../../packages/kit/dist/base/limits.js';
import { HeaderList } from '../../packages/wire/dist/http2/hpack.js';
import { chunksOf, ConnectionMemory, DeferredFlush } from '../../packages/wire/dist/base/socket.js';
import { Http2Connection } from '../../packages/wire/dist/http2/connection.js';
import { FrameWriter } from '../../packages/wire/dist/http2/stream.js';

/* HTTP/2 frames after the preface. The first byte says in which pieces they arrive. */

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', 'latin1');
const answer = new HeaderList({ ':status': '200' });

export async function run(input) {
  const written = [];
  const open = new Set();
  const socket = new Duplex({
    read: () => undefined,
    write: (chunk, _encoding, done) => {
      written.push(chunk);
      done();
    },
  });
  const connection = new Http2Connection(chunksOf(socket), {
    clock: systemClock,
    writer: new FrameWriter(),
    turn: new DeferredFlush(),
    memory: new ConnectionMemory(new PeerMemory(peerMemoryLimits())),
    open: (stream) => respond(stream, open),
  });
  const size = (input[0] ?? 0) + 1;
  for (const bytes of [preface, ...pieces(input.subarray(1), size)]) {
    if (!socket.destroyed) socket.emit('data', Buffer.from(bytes));
  }
  connection.checkTimeouts(0);
  await new Promise(setImmediate);
  socket.destroy();
  await new Promise(setImmediate);
  if (open.size > 0) throw new Error(`${open.size} streams stay open`);
  checkFrames(Buffer.concat(written));
}

function respond(stream, open) {
  open.add(stream);
  return {
    takeBytes: (_bytes, start, end) => {
      if ((end - start) % 3 === 0) stream.pause();
      if ((end - start) % 7 === 0) stream.reset('CANCEL');
    },
    takeEnd: () => {
      stream.respond(answer);
      stream.end();
    },
    takeClose: () => void open.delete(stream),
    isExemptFromReadRate: false,
    checkTimeouts: () => stream.resume(),
  };
}

function pieces(bytes, size) {
  const count = Math.ceil(bytes.length / size);
  return Array.from({ length: count }, (_, at) => bytes.subarray(at * size, (at + 1) * size));
}

/** What the server wrote is a sequence of whole frames. */
function checkFrames(bytes) {
  let at = 0;
  while (at < bytes.length) at += 9 + bytes.readUIntBE(at, 3);
  if (at !== bytes.length) throw new Error('the server wrote a part of a frame');
}
