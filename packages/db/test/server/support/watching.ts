import type { ClientReadableStream } from '@grpc/grpc-js';
import { plainRecord, recordOf } from './both.js';
import type { Message } from './proto.js';

/** Reads a stream message by message. */
export class WatchReader {
  /** Resolves when the server has accepted the call. */
  readonly isOpen: Promise<unknown>;
  readonly #messages: Message[] = [];
  #wake: (() => void) | undefined;
  #ended: { error: unknown } | undefined;

  constructor(private readonly stream: ClientReadableStream<Message>) {
    this.isOpen = new Promise((resolve, reject) => {
      stream.on('metadata', resolve);
      stream.on('error', reject);
    });
    this.isOpen.catch(() => undefined);
    stream.on('data', (message: Message) => {
      this.#messages.push(message);
      this.#wake?.();
    });
    stream.on('error', (error: unknown) => this.#end(error));
    stream.on('end', () => this.#end(new Error('The stream has ended')));
  }

  async next(): Promise<Message> {
    while (this.#messages.length === 0) {
      if (this.#ended) throw this.#ended.error;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    return this.#messages.shift()!;
  }

  /** The number `n` in the data of the next message's only change. */
  async number(): Promise<number> {
    const [change] = (await this.next())['changes'] as Message[];
    return Number((plainRecord(recordOf(change!))['data'] as Message)['n']);
  }

  close(): void {
    this.stream.on('error', () => undefined);
    this.stream.cancel();
  }

  #end(error: unknown): void {
    this.#ended ??= { error };
    this.#wake?.();
  }
}
