import { Socket } from 'node:net';

/** Bytes received on a socket. The reader sets `take` in the same tick. */
export interface ByteSource {
  readonly socket: Socket;
  /** `bytes` up to `end`; the buffer is reused after this returns. */
  take: (bytes: Buffer, end: number) => void;
}

interface Handle {
  useUserBuffer?: unknown;
}

const readBytes = 64 * 1024;

/**
 * Reads all sockets of a listener into one buffer. Node would allocate 64 KiB for every read, and
 * the garbage collection costs more than the read.
 */
export class SharedBuffer {
  readonly #bytes = Buffer.allocUnsafeSlow(readBytes);

  /** Takes over a socket that was just accepted and not read from. */
  read(accepted: Socket): ByteSource {
    const handle = handleOf(accepted);
    return handle ? this.#adopt(accepted, handle) : chunksOf(accepted);
  }

  /** Node accepts a read buffer only in the constructor, so a new socket adopts the handle. */
  #adopt(accepted: Socket & { _handle?: unknown }, handle: Handle): ByteSource {
    const take = (_bytes: Buffer, _end: number): void => undefined;
    const callback = (end: number): boolean => {
      source.take(this.#bytes, end);
      return true;
    };
    const options = { handle, onread: { buffer: this.#bytes, callback } };
    accepted._handle = null;
    const socket = new Socket(options as object);
    // The accepting server counts open connections.
    socket.on('close', () => accepted.destroy());
    const source: ByteSource = { socket, take };
    return source;
  }
}

/** Reads a socket by its data events. */
export function chunksOf(socket: Socket): ByteSource {
  const source: ByteSource = { socket, take: () => undefined };
  socket.on('data', (chunk: Buffer) => source.take(chunk, chunk.length));
  return source;
}

/** Undefined on Windows, where reads of several sockets are in progress at once. */
function handleOf(socket: Socket & { _handle?: Handle | null }): Handle | undefined {
  if (process.platform === 'win32') return undefined;
  const { _handle: handle } = socket;
  return typeof handle?.useUserBuffer === 'function' ? handle : undefined;
}
