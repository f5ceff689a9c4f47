import { HpackDecoder, type FieldSink } from './hpack-decoder.js';
import { ConnectionError } from './protocol.js';

// Four times the max header list: up to here an oversized list is a stream error.
const maxBlockBytes = 64 * 1024;
const maxFragments = 32;
const maxCachedBlockBytes = 512;
// Requests repeat one block; responses repeat one of headers and one of trailers.
const maxCachedBlocks = 2;

interface CachedBlock<Headers> {
  readonly block: Buffer;
  readonly changes: number;
  readonly headers: Headers;
}

/** Joins HEADERS and CONTINUATION fragments and decodes the header block. */
export class HeaderBlockReader<Headers extends FieldSink> {
  readonly #decoder = new HpackDecoder();
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** The last blocks that did not change the table, cached because peers repeat them. */
  #known: readonly CachedBlock<Headers>[] = [];
  /** The stream that expects CONTINUATION; 0: none. */
  streamId = 0;
  isLast = false;

  constructor(private readonly create: () => Headers) {}

  /** Starts a block without END_HEADERS. */
  begin(streamId: number, isLast: boolean, bytes: Buffer, start: number, end: number): void {
    this.streamId = streamId;
    this.isLast = isLast;
    this.#add(bytes, start, end);
  }

  /** Adds a CONTINUATION fragment; returns the headers when the block is complete. */
  append(bytes: Buffer, start: number, end: number, isEnd: boolean): Headers | undefined {
    this.#add(bytes, start, end);
    if (!isEnd) return undefined;
    const block = Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#bytes = 0;
    this.streamId = 0;
    return this.read(block, 0, block.length);
  }

  /** Decodes a complete block. The result may be shared by several streams: do not modify it. */
  read(bytes: Buffer, start: number, end: number): Headers {
    const { changes } = this.#decoder;
    for (const known of this.#known) {
      if (
        known.changes === changes &&
        known.block.length === end - start &&
        isAt(known.block, bytes, start)
      ) {
        return known.headers;
      }
    }
    const headers = this.create();
    this.#decoder.decode(bytes, start, end, headers);
    if (this.#decoder.changes === changes && end - start <= maxCachedBlockBytes) {
      const block = Buffer.from(bytes.subarray(start, end));
      const rest = this.#known.slice(0, maxCachedBlocks - 1);
      this.#known = [{ block, changes, headers }, ...rest];
    }
    return headers;
  }

  #add(bytes: Buffer, start: number, end: number): void {
    // Copied, so that the rest of the chunk can be freed.
    this.#pieces.push(Buffer.from(bytes.subarray(start, end)));
    this.#bytes += end - start;
    if (this.#bytes > maxBlockBytes || this.#pieces.length > maxFragments) {
      throw new ConnectionError('ENHANCE_YOUR_CALM', 'header block too large');
    }
  }
}

/** Whether `bytes` contains `block` at `start`. Faster than Buffer.compare for short blocks. */
function isAt(block: Buffer, bytes: Buffer, start: number): boolean {
  for (let i = 0; i < block.length; i++) if (block[i] !== bytes[start + i]) return false;
  return true;
}
