import type { CallError } from './call-error.js';
import type { CallObserver, ClientCall } from './client-call.js';

const maxQueuedMessages = 16;

/** Received messages of a stream that wait to be read. */
export class MessageQueue implements CallObserver {
  #messages: Buffer[] = [];
  #end: { readonly error: CallError | undefined } | undefined;
  #wake: (() => void) | undefined;
  call: ClientCall | undefined;

  takeMessage(message: Buffer): void {
    if (this.#messages.push(message) >= maxQueuedMessages) this.call?.pause();
    this.#wake?.();
  }

  takeEnd(error: CallError | undefined): void {
    this.#end = { error };
    this.#wake?.();
  }

  /** Undefined at the end of the stream. Messages received before an error come first. */
  async next(): Promise<Buffer | undefined> {
    for (;;) {
      const message = this.#messages.shift();
      if (message) {
        if (this.#messages.length === 0) this.call?.resume();
        return message;
      }
      if (this.#end?.error) throw this.#end.error;
      if (this.#end) return undefined;
      await new Promise<void>((resolve) => (this.#wake = resolve));
      this.#wake = undefined;
    }
  }
}
