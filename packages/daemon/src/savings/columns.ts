import { features, type Entry, type Feature } from './entry.js';

/** A row of the ledger, without texts. */
export interface Row {
  at: number;
  feature: Feature;
  rawBytes: number;
  retainedBytes: number;
  outputBytes: number;
  rawTokens: number;
  retainedTokens: number;
  outputTokens: number;
  /** Tokens were counted by the provider, not derived from bytes. */
  isMeasured: boolean;
}

const numbersPerRow = 7;

/**
 * All rows of the ledger in memory as typed arrays, 58 bytes per row.
 */
export class Columns {
  #numbers = new Float64Array(numbersPerRow * 256);
  #kinds = new Uint8Array(2 * 256);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  clear(): void {
    this.#length = 0;
  }

  add(entry: Entry): void {
    if (this.#length * 2 === this.#kinds.length) this.#grow();
    const { at, rawBytes, retainedBytes, outputBytes, rawTokens, retainedTokens, outputTokens } =
      entry;
    this.#numbers.set(
      [at, rawBytes, retainedBytes, outputBytes, rawTokens, retainedTokens, outputTokens],
      this.#length * numbersPerRow,
    );
    const isMeasured = entry.basis === 'MEASURED' || rawBytes + retainedBytes === 0;
    this.#kinds.set([features.indexOf(entry.feature), isMeasured ? 1 : 0], this.#length * 2);
    this.#length += 1;
  }

  /** Calls back with every row since `since`. The row object is reused between calls. */
  each(since: number, visit: (row: Row) => void): void {
    const row = {} as Row;
    for (let index = 0; index < this.#length; index++) {
      const start = index * numbersPerRow;
      const at = this.#numbers[start]!;
      if (at < since) continue;
      row.at = at;
      row.rawBytes = this.#numbers[start + 1]!;
      row.retainedBytes = this.#numbers[start + 2]!;
      row.outputBytes = this.#numbers[start + 3]!;
      row.rawTokens = this.#numbers[start + 4]!;
      row.retainedTokens = this.#numbers[start + 5]!;
      row.outputTokens = this.#numbers[start + 6]!;
      row.feature = features[this.#kinds[index * 2]!]!;
      row.isMeasured = this.#kinds[index * 2 + 1] === 1;
      visit(row);
    }
  }

  #grow(): void {
    const numbers = new Float64Array(this.#numbers.length * 2);
    numbers.set(this.#numbers);
    this.#numbers = numbers;
    const kinds = new Uint8Array(this.#kinds.length * 2);
    kinds.set(this.#kinds);
    this.#kinds = kinds;
  }
}
