import type { WatchMessage } from '@millrace/db';

const maxChanges = 1_000;

/** Reads ahead of the consumer, so that commits that wait are processed together. */
export class MessageBuffer {
  #messages: WatchMessage[] = [];
  #changeCount = 0;
  #end: { readonly error?: unknown } | undefined;
  #wakeReader: (() => void) | undefined;
  #wakeTaker: (() => void) | undefined;

  constructor(messages: AsyncIterable<WatchMessage>) {
    this.#read(messages).then(
      () => this.#finish({}),
      (error: unknown) => this.#finish({ error }),
    );
  }

  /** All messages that wait, at least one; undefined at the end. */
  async take(): Promise<WatchMessage[] | undefined> {
    while (this.#messages.length === 0) {
      if (this.#end && 'error' in this.#end) throw this.#end.error;
      if (this.#end) return undefined;
      await new Promise<void>((resolve) => (this.#wakeTaker = resolve));
    }
    const taken = this.#messages;
    this.#messages = [];
    this.#changeCount = 0;
    this.#wakeReader?.();
    return taken;
  }

  async #read(messages: AsyncIterable<WatchMessage>): Promise<void> {
    for await (const message of messages) {
      this.#messages.push(message);
      this.#changeCount += message.changes.length;
      this.#wakeTaker?.();
      if (this.#changeCount < maxChanges) continue;
      await new Promise<void>((resolve) => (this.#wakeReader = resolve));
    }
  }

  #finish(end: { readonly error?: unknown }): void {
    this.#end = end;
    this.#wakeTaker?.();
  }
}
