import type { Http2Stream } from './stream.js';

/**
 * The open streams of a connection by ID. A single stream is stored outside the map: many clients
 * have one at a time, and filling and emptying a map for each call is slow.
 */
export class OpenStreams {
  #single: Http2Stream | undefined;
  readonly #others = new Map<number, Http2Stream>();

  get size(): number {
    return this.#others.size + (this.#single ? 1 : 0);
  }

  get(id: number): Http2Stream | undefined {
    const single = this.#single;
    if (single?.id === id) return single;
    return this.#others.size === 0 ? undefined : this.#others.get(id);
  }

  add(stream: Http2Stream): void {
    if (this.size === 0) this.#single = stream;
    else this.#others.set(stream.id, stream);
  }

  delete(stream: Http2Stream): void {
    if (this.#single === stream) this.#single = undefined;
    else this.#others.delete(stream.id);
  }

  /** A snapshot of the open streams. */
  all(): Http2Stream[] {
    const others = [...this.#others.values()];
    return this.#single ? [this.#single, ...others] : others;
  }

  clear(): void {
    this.#single = undefined;
    this.#others.clear();
  }
}
