import type { Readable } from 'node:stream';

/** Longer lines are reported as such and skipped. */
export const maxLineBytes = 4 * 1024 * 1024;
const maxWaitingBytes = 2 * 1024 * 1024;
const maxWaitingLines = 2_000;
const newline = 0x0a;

/** The lines of a stream. Reads ahead while the taker works, up to a limit. */
export class LineQueue {
  readonly #source: Readable;
  #lines: (Buffer | 'too long')[] = [];
  #waitingBytes = 0;
  /** The beginning of a line whose end has not arrived. */
  #open: Buffer[] = [];
  #openBytes = 0;
  #isSkipping = false;
  #isEnded = false;
  #failure: { reason: unknown } | undefined;
  #wake: (() => void) | undefined;

  constructor(source: Readable, signal: AbortSignal) {
    this.#source = source;
    const fail = (reason: unknown) => {
      this.#failure ??= { reason };
      this.#wake?.();
    };
    source.on('data', (chunk: Buffer) => this.#add(chunk));
    source.on('end', () => this.#end());
    source.on('error', fail);
    source.on('close', () => {
      if (!this.#isEnded) fail(new Error('The client disconnected'));
    });
    signal.addEventListener('abort', () => fail(signal.reason), { once: true });
  }

  /** The next lines without blank ones, at most `count`; undefined at the end. */
  async take(count: number): Promise<(Buffer | 'too long')[] | undefined> {
    while (this.#lines.length === 0) {
      if (this.#failure) throw this.#failure.reason;
      if (this.#isEnded) return undefined;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    const taken = this.#lines.splice(0, count);
    for (const line of taken) this.#waitingBytes -= line.length;
    if (!this.#isFull) this.#source.resume();
    return taken;
  }

  get #isFull(): boolean {
    return this.#lines.length >= maxWaitingLines || this.#waitingBytes >= maxWaitingBytes;
  }

  #add(chunk: Buffer): void {
    let start = 0;
    for (let end; (end = chunk.indexOf(newline, start)) !== -1; start = end + 1) {
      this.#extend(chunk.subarray(start, end));
      this.#closeLine();
    }
    this.#extend(chunk.subarray(start));
    if (this.#isFull) this.#source.pause();
    if (this.#lines.length > 0) this.#wake?.();
  }

  #extend(piece: Buffer): void {
    if (this.#isSkipping || piece.length === 0) return;
    this.#openBytes += piece.length;
    this.#open.push(piece);
    if (this.#openBytes <= maxLineBytes) return;
    this.#isSkipping = true;
    this.#open = [];
  }

  #closeLine(): void {
    const line = this.#isSkipping ? ('too long' as const) : Buffer.concat(this.#open);
    this.#open = [];
    this.#openBytes = 0;
    this.#isSkipping = false;
    if (line !== 'too long' && isBlank(line)) return;
    this.#lines.push(line);
    this.#waitingBytes += line.length;
  }

  #end(): void {
    if (this.#openBytes > 0) this.#closeLine();
    this.#isEnded = true;
    this.#wake?.();
  }
}

function isBlank(line: Buffer): boolean {
  for (const byte of line) if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0d) return false;
  return true;
}
