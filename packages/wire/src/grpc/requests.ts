/** A message as it was received. */
export interface ReceivedMessage {
  readonly bytes: Buffer;
  readonly isCompressed: boolean;
}

/** Where the messages come from. */
export interface RequestSource {
  pause(): void;
  resume(): void;
  /** Decompresses a message if need be; undefined when it cannot be read, and the call has ended. */
  open(message: ReceivedMessage): Promise<Buffer | undefined>;
  /** So much of what was received is no longer needed. */
  release(bytes: number): void;
}

/** The messages of a caller that sends several, one after the other as they are asked for. */
export class RequestQueue {
  readonly #messages: ReceivedMessage[] = [];
  #hasEnded = false;
  /** Memory of the message that was handed out last. */
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

  /** Undefined when the caller has said all, or the call is over. */
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
