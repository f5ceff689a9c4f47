import type { Clock } from '@millrace/kit/clock';
import type { ServerCall } from '@millrace/wire/grpc';
import { refuse } from '../../engine/refusal.js';

// Enough to keep the line busy while the next message is made.
const maxUnsentBytes = 1024 * 1024;
const maxScarceBytes = 64 * 1024;

export interface SenderOptions {
  call: ServerCall;
  clock: Clock;
  signal: AbortSignal;
  /** A caller that takes nothing for this long is given up. */
  stallMs: number;
}

/** Sends messages no faster than the caller takes them. */
export class StreamSender {
  readonly #options: SenderOptions;

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  /** Undefined when the next message may follow at once. */
  send(message: Uint8Array): Promise<void> | undefined {
    const { call, signal } = this.#options;
    signal.throwIfAborted();
    call.send(message);
    return this.#unlessTaken();
  }

  /** As `send`, for a message with its head. */
  sendFramed(frame: Uint8Array): Promise<void> | undefined {
    const { call, signal } = this.#options;
    signal.throwIfAborted();
    call.sendFramed(frame);
    return this.#unlessTaken();
  }

  /** What is pushed now would not have to wait. */
  hasRoom(): boolean {
    const { call } = this.#options;
    const { unsentBytes } = call;
    return unsentBytes <= maxScarceBytes || (unsentBytes <= maxUnsentBytes && !call.isMemoryScarce);
  }

  /** As `sendFramed`, for those who ask first whether there is room. */
  push(frames: Uint8Array): void {
    this.#options.call.sendFramed(frames);
  }

  #unlessTaken(): Promise<void> | undefined {
    return this.hasRoom() ? undefined : this.#taken();
  }

  async #taken(): Promise<void> {
    const { call, clock, signal, stallMs } = this.#options;
    await new Promise<void>((resolve, reject) => {
      const end = (settle: () => void) => {
        timer.cancel();
        signal.removeEventListener('abort', onAbort);
        call.onSent = undefined;
        settle();
      };
      const onAbort = () => end(() => reject(signal.reason));
      const onStall = () => end(() => reject(stalled(stallMs)));
      let timer = clock.after(stallMs, onStall);
      call.onSent = () => {
        if (this.hasRoom()) return end(resolve);
        timer.cancel();
        timer = clock.after(stallMs, onStall);
      };
      signal.addEventListener('abort', onAbort);
    });
  }
}

export function stalled(stallMs: number): Error {
  const text = `The caller took nothing for ${stallMs / 1000} s; call again to go on.`;
  return refuse('DEADLINE_EXCEEDED', text);
}
