import type { Tables } from './tables.js';

/**
 * Counts the readers of each file: a replaced file stays open until its last snapshot is released.
 */
export class FileUse {
  readonly #readers = new Map<Tables, number>();
  readonly #waiting = new Map<Tables, () => void>();
  readonly #retiring = new Set<Promise<void>>();

  /** Registers a reader, which calls the returned function when it is done. */
  begin(tables: Tables): () => void {
    this.#readers.set(tables, (this.#readers.get(tables) ?? 0) + 1);
    return () => {
      const left = this.#readers.get(tables)! - 1;
      if (left > 0) this.#readers.set(tables, left);
      else {
        this.#readers.delete(tables);
        this.#waiting.get(tables)?.();
      }
    };
  }

  /** Closes a file that gets no new readers, and then calls `closed`. */
  retire(tables: Tables, closed: () => void): Promise<void> {
    const retired = this.#unused(tables)
      .then(() => tables.close())
      .then(closed)
      .finally(() => this.#retiring.delete(retired));
    this.#retiring.add(retired);
    return retired;
  }

  /** Resolves when every retired file is closed. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#retiring);
  }

  async #unused(tables: Tables): Promise<void> {
    if (!this.#readers.has(tables)) return;
    await new Promise<void>((resolve) => this.#waiting.set(tables, resolve));
    this.#waiting.delete(tables);
  }
}
