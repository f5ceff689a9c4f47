/** The messages of a caller that sends several, one after the other as they are asked for. */
export class RequestQueue {
  readonly #messages: Promise<Buffer | undefined>[] = [];
  #hasEnded = false;
  #wake: (() => void) | undefined;

  constructor(private readonly source: { pause(): void; resume(): void }) {}

  /** A message that turns out not to be readable ends the call by itself. */
  push(message: Promise<Buffer>): void {
    this.#messages.push(message.catch(() => undefined));
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
    if (this.#messages.length === 0 && !this.#hasEnded) {
      this.source.resume();
      await new Promise<void>((resolve) => (this.#wake = resolve));
      this.#wake = undefined;
    }
    return this.#messages.shift();
  }
}
