import { createHash } from 'node:crypto';
import type { BackupTrailer } from './parts.js';

export const maxChunkBytes = 256 * 1024;

/** Collects bytes into chunks of one size, and counts and hashes them all. */
export class Chunks {
  readonly #hash = createHash('sha256');
  #pieces: Buffer[] = [];
  #have = 0;
  #bytes = 0;
  records = 0;

  add(piece: Buffer): void {
    this.#pieces.push(piece);
    this.#have += piece.length;
  }

  /** The next full chunk; undefined when there is none yet. */
  next(): Buffer | undefined {
    return this.#have < maxChunkBytes ? undefined : this.#take(maxChunkBytes);
  }

  /** The remaining bytes at the end. */
  rest(): Buffer | undefined {
    return this.#have === 0 ? undefined : this.#take(this.#have);
  }

  get bytes(): number {
    return this.#bytes;
  }

  trailer(): BackupTrailer {
    return { bytes: this.#bytes, sha256: this.#hash.digest('hex'), records: this.records };
  }

  #take(length: number): Buffer {
    const all = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
    const chunk = all.subarray(0, length);
    this.#pieces = all.length > length ? [all.subarray(length)] : [];
    this.#have -= length;
    this.#bytes += length;
    this.#hash.update(chunk);
    return chunk;
  }
}
