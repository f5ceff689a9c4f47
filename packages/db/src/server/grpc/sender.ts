import type { Clock } from '@millrace/kit/clock';
import type { ServerCall } from '@millrace/wire/grpc';
import { refuse } from '@millrace/engine/value/refusal';
import type { Abortable } from '../service/call.js';

// Enough to keep the connection busy while the next message is encoded.
const maxUnsentBytes = 1024 * 1024;
const maxScarceBytes = 64 * 1024;

export interface SenderOptions {
  call: ServerCall;
  clock: Clock;
  scope: Abortable;
  /** A call is ended when its caller reads nothing for this long. */
  stallMs: number;
}

/** Sends messages with backpressure from the caller. */
export class StreamSender {
  readonly #options: SenderOptions;

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  /** Resolves when the next message may be sent; undefined means at once. */
  send(message: Uint8Array): Promise<void> | undefined {
    const { call, scope } = this.#options;
    scope.throwIfAborted();
    call.send(message);
    return this.#unlessTaken();
  }

  /** Like `send`, for a message that already has its gRPC prefix. */
  sendFramed(frame: Uint8Array): Promise<void> | undefined {
    const { call, scope } = this.#options;
    scope.throwIfAborted();
    call.sendFramed(frame);
    return this.#unlessTaken();
  }

  /** Whether a push would be sent without waiting. */
  hasRoom(): boolean {
    const { call } = this.#options;
    const { unsentBytes } = call;
    return unsentBytes <= maxScarceBytes || (unsentBytes <= maxUnsentBytes && !call.isMemoryScarce);
  }

  /** Like `sendFramed`, for callers that check `hasRoom` first. */
  push(frames: Uint8Array): void {
    this.#options.call.sendFramed(frames);
  }

  #unlessTaken(): Promise<void> | undefined {
    return this.hasRoom() ? undefined : this.#taken();
  }

  async #taken(): Promise<void> {
    const { call, clock, stallMs } = this.#options;
    const { signal } = this.#options.scope;
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
  const text = `The caller read nothing for ${stallMs / 1000} s. Call again to continue.`;
  return refuse('DEADLINE_EXCEEDED', text);
}
