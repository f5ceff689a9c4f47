/**
 * `ctl db serve` that notes when each step of an insert begins: its classes are wrapped before it
 * starts, so the server itself has no code for it. One call at a time.
 * Usage: trace-server.mjs ROOT ARGS...; the message "steps" is answered with the notes.
 */
import { Socket } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [root, ...args] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(join(root, 'packages', path)).href);
const now = () => Number(process.hrtime.bigint() / 10n) / 100;

const calls = [];
let call;
let receivedAt;
const mark = (step) => {
  if (call && call[step] === undefined) call[step] = now();
};

function wrap(object, name, make) {
  const original = object[name];
  object[name] = make(original);
}

const { SharedBuffer } = await load('wire/dist/base/socket.js');
const { TurnQueue } = await load('db/dist/server/calls/turn-queue.js');
const { MethodCodec } = await load('db/dist/server/grpc/codec.js');
const { Writer } = await load('engine/dist/storage/writer.js');
const { nodeFiles } = await load('engine/dist/storage/file/files.js');

wrap(
  SharedBuffer.prototype,
  'read',
  (read) =>
    function (socket) {
      const source = read.call(this, socket);
      let { take } = source;
      Object.defineProperty(source, 'take', {
        get: () => (bytes, end) => {
          receivedAt = now();
          take(bytes, end);
        },
        set: (reader) => {
          take = reader;
        },
      });
      return source;
    },
);

wrap(
  TurnQueue.prototype,
  'push',
  (push) =>
    function (item) {
      if (!call && item.request) call = { received: receivedAt, queued: now() };
      return push.call(this, item);
    },
);

wrap(
  MethodCodec.prototype,
  'decode',
  (decode) =>
    function (bytes) {
      mark('decoding');
      const request = decode.call(this, bytes);
      mark('decoded');
      return request;
    },
);

wrap(
  Writer.prototype,
  'submit',
  (submit) =>
    function (job) {
      mark('submitted');
      return submit.call(this, () => {
        mark('running');
        const result = job();
        mark('ran');
        return result;
      });
    },
);

wrap(
  nodeFiles,
  'open',
  (open) =>
    function (path, mode) {
      const file = open.call(this, path, mode);
      wrap(
        file,
        'write',
        (write) =>
          function (bytes, at) {
            mark('writing');
            return write.call(file, bytes, at);
          },
      );
      wrap(
        file,
        'sync',
        (sync) =>
          async function () {
            mark('syncing');
            await sync.call(file);
            mark('synced');
          },
      );
      return file;
    },
);

wrap(
  MethodCodec.prototype,
  'encode',
  (encode) =>
    function (message) {
      mark('encoding');
      return encode.call(this, message);
    },
);

wrap(
  Socket.prototype,
  'write',
  (write) =>
    function (...rest) {
      if (call?.encoding !== undefined) {
        mark('sending');
        calls.push(call);
        call = undefined;
      }
      return write.apply(this, rest);
    },
);

process.on('message', () => process.send(calls.splice(0)));
// The channel alone keeps no process alive.
process.channel.unref();
const { main } = await load('ctl/dist/main.js');
await main(args);
