/**
 * Just enough of an HTTP/2 client to hold many gRPC streams open and look at their bytes, and to
 * make calls of one message: node's own spends more on each than the servers do, and would be what
 * is measured on a machine that it shares with them.
 */
import { connect } from 'node:net';

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const types = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goaway: 7, window: 8 };
const flags = { end: 1, ack: 1, endHeaders: 4 };
const settings = { mostStreams: 3, firstWindow: 4 };
const headBytes = 9;
const largestWindow = 2 ** 31 - 1;
const firstWindow = 65_535;

/** `onData(stream, bytes)` is given the bytes of each frame, valid until it returns. */
export class RawConnection {
  #socket;
  #rest = Buffer.alloc(0);
  #next = 1;
  #opening = new Map();
  #blocks = new Map();
  /** Calls under way, by stream, and those for which there is no room yet. */
  #calls = new Map();
  #waiting = [];
  #mostCalls = Infinity;
  #windowBytes = firstWindow;

  constructor(url, { onData, onEnd }) {
    const { hostname, port, host } = new URL(url);
    this.host = host;
    this.onData = onData;
    this.onEnd = onEnd;
    this.#socket = connect(Number(port), hostname);
    this.#socket.setNoDelay(true);
    this.#socket.on('data', (chunk) => this.#take(chunk));
    this.#socket.on('error', onEnd);
    this.#socket.on('close', () => onEnd(new Error('the connection is closed')));
    // No window is ever used up: nothing has to be granted while it is measured.
    const window = Buffer.alloc(6);
    window.writeUInt16BE(settings.firstWindow, 0);
    window.writeUInt32BE(largestWindow, 2);
    const more = Buffer.alloc(4);
    more.writeUInt32BE(largestWindow - firstWindow, 0);
    this.#socket.write(
      Buffer.concat([
        preface,
        frame(types.settings, 0, 0, window),
        frame(types.window, 0, 0, more),
      ]),
    );
  }

  /** Resolves with the number of the stream when its answer begins. */
  open({ path, body, isOpen }) {
    const id = this.#nextId();
    const begun = new Promise((resolve) => this.#opening.set(id, resolve));
    this.#socket.write(
      Buffer.concat([
        frame(types.headers, flags.endHeaders, id, this.#blockOf(path)),
        frame(types.data, isOpen ? 0 : flags.end, id, body),
      ]),
    );
    return { id, begun };
  }

  /**
   * A call of one message. `onAnswer` hears whether it was answered: a refusal has no data, and an
   * answer has.
   */
  call({ path, body }, onAnswer) {
    this.#waiting.push({ path, body, onAnswer });
    this.#sendWaiting();
  }

  #sendWaiting() {
    while (this.#waiting.length > 0 && this.#calls.size < this.#mostCalls) {
      const { path, body, onAnswer } = this.#waiting[0];
      if (body.length > this.#windowBytes) return;
      this.#waiting.shift();
      this.#windowBytes -= body.length;
      const id = this.#nextId();
      this.#calls.set(id, { onAnswer, hasData: false });
      this.#socket.write(
        Buffer.concat([
          frame(types.headers, flags.endHeaders, id, this.#blockOf(path)),
          frame(types.data, flags.end, id, body),
        ]),
      );
    }
  }

  #nextId() {
    const id = this.#next;
    this.#next += 2;
    return id;
  }

  #blockOf(path) {
    let block = this.#blocks.get(path);
    if (!block) this.#blocks.set(path, (block = headersOf(path, this.host)));
    return block;
  }

  destroy() {
    this.#socket.destroy();
  }

  #take(chunk) {
    const bytes = this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : chunk;
    let at = 0;
    while (bytes.length - at >= headBytes) {
      const length = bytes.readUIntBE(at, 3);
      const end = at + headBytes + length;
      if (end > bytes.length) break;
      this.#takeFrame(
        bytes[at + 3],
        bytes[at + 4],
        bytes.readUInt32BE(at + 5),
        bytes,
        at + headBytes,
        end,
      );
      at = end;
    }
    this.#rest = bytes.subarray(at);
  }

  #takeFrame(type, flag, id, bytes, start, end) {
    const call = this.#calls.get(id);
    if (call) return this.#takeAnswer(call, type, flag, id, end - start);
    if (type === types.data) this.onData(id, bytes.subarray(start, end));
    if (type === types.headers) this.#opening.get(id)?.(id);
    if (type === types.settings && !(flag & flags.ack)) this.#takeSettings(bytes, start, end);
    if (type === types.window && id === 0) {
      this.#windowBytes += bytes.readUInt32BE(start);
      this.#sendWaiting();
    }
    if (type === types.ping && !(flag & flags.ack)) {
      this.#socket.write(frame(types.ping, flags.ack, 0, bytes.subarray(start, end)));
    }
    const isLast = (type === types.data || type === types.headers) && (flag & flags.end) !== 0;
    if (isLast || type === types.reset || type === types.goaway) {
      this.onEnd(new Error('a stream has ended'));
    }
  }

  #takeAnswer(call, type, flag, id, length) {
    if (type === types.reset) return this.onEnd(new Error('a call was cut off'));
    if (type === types.data && length > 0) call.hasData = true;
    if (type === types.window || !(flag & flags.end)) return;
    this.#calls.delete(id);
    call.onAnswer(call.hasData);
    this.#sendWaiting();
  }

  #takeSettings(bytes, start, end) {
    for (let at = start; at < end; at += 6) {
      if (bytes.readUInt16BE(at) === settings.mostStreams) {
        this.#mostCalls = bytes.readUInt32BE(at + 2);
      }
    }
    this.#socket.write(frame(types.settings, flags.ack, 0, Buffer.alloc(0)));
  }
}

function headersOf(path, host) {
  const fields = [
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', path],
    [':authority', host],
    ['content-type', 'application/grpc'],
    ['te', 'trailers'],
  ];
  return Buffer.concat(fields.map(([name, value]) => literal(name, value)));
}

function frame(type, flag, id, payload) {
  const head = Buffer.alloc(headBytes);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flag;
  head.writeUInt32BE(id, 5);
  return Buffer.concat([head, payload]);
}

/** A header field that no table remembers; both parts are shorter than 127 bytes. */
function literal(name, value) {
  return Buffer.concat([
    Buffer.from([0, name.length]),
    Buffer.from(name),
    Buffer.from([value.length]),
    Buffer.from(value),
  ]);
}
