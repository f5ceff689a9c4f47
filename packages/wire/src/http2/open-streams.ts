import type { Http2Stream } from './stream.js';

/**
 * The streams of a connection by their numbers. The one of a connection that has no other stands
 * by itself: many callers have one at a time, and a map that is filled and emptied for each is
 * made anew for each.
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

  /** All that are open now, whatever becomes of them meanwhile. */
  all(): Http2Stream[] {
    const others = [...this.#others.values()];
    return this.#single ? [this.#single, ...others] : others;
  }

  clear(): void {
    this.#single = undefined;
    this.#others.clear();
  }
}
