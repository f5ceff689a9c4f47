import type { ServerWritableStream } from '@grpc/grpc-js';
import type { Clock } from '@millrace/kit/clock';
import { refuse } from '../../engine/refusal.js';

// Enough to keep the line busy while the next message is made.
const mostUnsentBytes = 1024 * 1024;

export interface SenderOptions {
  call: ServerWritableStream<Buffer, Buffer>;
  clock: Clock;
  signal: AbortSignal;
  /** A caller that takes nothing for this long is given up. */
  stallMs: number;
}

/** Sends messages no faster than the caller takes them. */
export class StreamSender {
  readonly #options: SenderOptions;
  #unsentBytes = 0;
  #wake: (() => void) | undefined;

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  async send(message: Buffer): Promise<void> {
    const { call, signal } = this.#options;
    signal.throwIfAborted();
    this.#unsentBytes += message.length;
    call.write(message, () => {
      this.#unsentBytes -= message.length;
      if (this.#unsentBytes <= mostUnsentBytes) this.#wake?.();
    });
    if (this.#unsentBytes > mostUnsentBytes) await this.#taken();
  }

  async #taken(): Promise<void> {
    const { clock, signal, stallMs } = this.#options;
    await new Promise<void>((resolve, reject) => {
      const end = (settle: () => void) => {
        timer.cancel();
        signal.removeEventListener('abort', onAbort);
        this.#wake = undefined;
        settle();
      };
      const onAbort = () => end(() => reject(signal.reason));
      const timer = clock.after(stallMs, () => end(() => reject(stalled(stallMs))));
      this.#wake = () => end(resolve);
      signal.addEventListener('abort', onAbort);
    });
  }
}

export function stalled(stallMs: number): Error {
  const text = `The caller took nothing for ${stallMs / 1000} s; call again to go on.`;
  return refuse('DEADLINE_EXCEEDED', text);
}
