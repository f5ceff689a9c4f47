import { Socket } from 'node:net';

/** What arrives on a socket. Whoever reads it sets `take`, before the event loop turns. */
export interface ByteSource {
  readonly socket: Socket;
  /** `bytes` up to `end`, which may be overwritten when it returns. */
  take: (bytes: Buffer, end: number) => void;
}

interface Handle {
  useUserBuffer?: unknown;
}

const readBytes = 64 * 1024;

/**
 * Reads the sockets of a face into one buffer, one after the other: node would make a buffer of
 * 64 KiB for every read, cut it down to what came, and leave it to be cleared away, which costs
 * more than the reading.
 */
export class SharedBuffer {
  readonly #bytes = Buffer.allocUnsafeSlow(readBytes);

  /** Goes on with a socket that was just accepted and that nobody has read from. */
  read(accepted: Socket): ByteSource {
    const handle = handleOf(accepted);
    return handle ? this.#adopt(accepted, handle) : chunksOf(accepted);
  }

  /** Node takes a buffer of ours only when a socket is made, so another one takes its place. */
  #adopt(accepted: Socket & { _handle?: unknown }, handle: Handle): ByteSource {
    const take = (_bytes: Buffer, _end: number): void => undefined;
    const callback = (end: number): boolean => {
      source.take(this.#bytes, end);
      return true;
    };
    const options = { handle, onread: { buffer: this.#bytes, callback } };
    accepted._handle = null;
    const socket = new Socket(options as object);
    // The server that accepted it counts the connections that are left.
    socket.on('close', () => accepted.destroy());
    const source: ByteSource = { socket, take };
    return source;
  }
}

/** Reads a socket as node does. */
export function chunksOf(socket: Socket): ByteSource {
  const source: ByteSource = { socket, take: () => undefined };
  socket.on('data', (chunk: Buffer) => source.take(chunk, chunk.length));
  return source;
}

/** Undefined where reads may be under way for several sockets at once, as they are on Windows. */
function handleOf(socket: Socket & { _handle?: Handle | null }): Handle | undefined {
  if (process.platform === 'win32') return undefined;
  const { _handle: handle } = socket;
  return typeof handle?.useUserBuffer === 'function' ? handle : undefined;
}
