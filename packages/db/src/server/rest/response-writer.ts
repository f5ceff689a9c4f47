import type { Exchange } from '@millrace/kit/http';
import type { Abortable } from '../service/call.js';

/** Writes a chunked response with backpressure. */
export class ResponseWriter {
  constructor(
    private readonly exchange: Exchange,
    private readonly scope: Abortable,
  ) {}

  get hasBegun(): boolean {
    return this.exchange.response.headersSent;
  }

  begin(contentType: string): void {
    const noBuffering = ['x-accel-buffering', 'no'];
    this.exchange.begin(200, [
      'content-type',
      contentType,
      'cache-control',
      'no-store',
      ...noBuffering,
    ]);
  }

  async write(piece: string | Uint8Array): Promise<void> {
    this.scope.throwIfAborted();
    const drained = this.exchange.write(piece);
    if (!drained) return;
    await untilAborted(drained, this.scope.signal);
  }

  /** Whether a push would be sent without waiting. */
  hasRoom(): boolean {
    const { response } = this.exchange;
    return !response.writableNeedDrain && !response.destroyed;
  }

  /** Like `write`, for callers that check `hasRoom` first. */
  push(piece: Uint8Array): void {
    this.exchange.response.write(piece);
  }

  /** Writes the last chunk. A response that has not begun is sent whole, with Content-Length. */
  end(contentType: string, piece: string | Buffer = ''): void {
    const { exchange } = this;
    if (this.hasBegun) exchange.response.end(piece);
    else exchange.send(200, ['content-type', contentType, 'cache-control', 'no-store'], piece);
  }
}

async function untilAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  let onAbort: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort);
  });
  try {
    await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
    work.catch(() => undefined);
  }
}
