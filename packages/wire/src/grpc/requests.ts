/** A message as it was received. */
export interface ReceivedMessage {
  readonly bytes: Buffer;
  readonly isCompressed: boolean;
}

/** Source of request messages. */
export interface RequestSource {
  pause(): void;
  resume(): void;
  /** Decompresses a message if needed; undefined when that failed and ended the call. */
  open(message: ReceivedMessage): Promise<Buffer | undefined>;
  /** Releases the memory of processed messages. */
  release(bytes: number): void;
}

/** Request messages of a client stream, read one at a time with backpressure. */
export class RequestQueue {
  readonly #messages: ReceivedMessage[] = [];
  #hasEnded = false;
  /** Memory of the message returned last. */
  #currentBytes = 0;
  #wake: (() => void) | undefined;

  constructor(private readonly source: RequestSource) {}

  push(message: ReceivedMessage): void {
    this.#messages.push(message);
    this.source.pause();
    this.#wake?.();
  }

  end(): void {
    this.#hasEnded = true;
    this.#wake?.();
    this.source.resume();
  }

  /** Undefined at the end of the stream or of the call. */
  async next(): Promise<Buffer | undefined> {
    this.source.release(this.#currentBytes);
    this.#currentBytes = 0;
    if (this.#messages.length === 0 && !this.#hasEnded) {
      this.source.resume();
      await new Promise<void>((resolve) => (this.#wake = resolve));
      this.#wake = undefined;
    }
    const message = this.#messages.shift();
    if (!message) return undefined;
    const opened = await this.source.open(message);
    this.#currentBytes = message.bytes.length + (message.isCompressed ? (opened?.length ?? 0) : 0);
    return opened;
  }
}
