import type { ServerResponse } from 'node:http';
import type { Clock } from '@millrace/kit/clock';
import { stalled } from '../grpc/sender.js';

export interface WriterOptions {
  response: ServerResponse;
  clock: Clock;
  signal: AbortSignal;
  /** A caller that takes nothing for this long is given up. */
  stallMs: number;
}

/** Writes an answer that comes in pieces, no faster than the caller takes them. */
export class ResponseWriter {
  constructor(private readonly options: WriterOptions) {}

  get hasBegun(): boolean {
    return this.options.response.headersSent;
  }

  begin(contentType: string): void {
    const { response } = this.options;
    response.writeHead(200, {
      'content-type': contentType,
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    });
    response.flushHeaders();
  }

  async write(piece: string | Uint8Array): Promise<void> {
    const { response, signal } = this.options;
    signal.throwIfAborted();
    if (!response.write(piece)) await this.#taken();
  }

  /** What is pushed now would not have to wait. */
  hasRoom(): boolean {
    const { response } = this.options;
    return !response.writableNeedDrain && !response.destroyed;
  }

  /** As `write`, for those who ask first whether there is room. */
  push(piece: Uint8Array): void {
    this.options.response.write(piece);
  }

  /** The last piece; an answer that has not begun is sent as a whole, with its length. */
  end(contentType: string, piece = ''): void {
    const { response } = this.options;
    if (!this.hasBegun) {
      response.writeHead(200, {
        'content-type': contentType,
        'content-length': Buffer.byteLength(piece),
        'cache-control': 'no-store',
      });
    }
    response.end(piece);
  }

  async #taken(): Promise<void> {
    const { response, clock, signal, stallMs } = this.options;
    await new Promise<void>((resolve, reject) => {
      const end = (settle: () => void) => {
        timer.cancel();
        signal.removeEventListener('abort', onAbort);
        response.removeListener('drain', onDrain);
        settle();
      };
      const onDrain = () => end(resolve);
      const onAbort = () => end(() => reject(signal.reason));
      const timer = clock.after(stallMs, () => end(() => reject(stalled(stallMs))));
      response.on('drain', onDrain);
      signal.addEventListener('abort', onAbort);
      if (signal.aborted) onAbort();
    });
  }
}
