import { HpackDecoder } from './hpack-decoder.js';
import { ConnectionError } from './protocol.js';
import { RequestHeaders } from './request-headers.js';

// Four times the max header list: up to here an oversized list is a stream error.
const maxBlockBytes = 64 * 1024;
const maxFragments = 32;
const maxCachedBlockBytes = 512;

/** Joins HEADERS and CONTINUATION fragments and decodes the header block. */
export class HeaderBlockReader {
  readonly #decoder = new HpackDecoder();
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** The last block that did not change the table, cached because clients repeat it. */
  #known: { block: Buffer; changes: number; headers: RequestHeaders } | undefined;
  /** The stream that expects CONTINUATION; 0: none. */
  streamId = 0;
  isLast = false;

  /** Starts a block without END_HEADERS. */
  begin(streamId: number, isLast: boolean, bytes: Buffer, start: number, end: number): void {
    this.streamId = streamId;
    this.isLast = isLast;
    this.#add(bytes, start, end);
  }

  /** Adds a CONTINUATION fragment; returns the headers when the block is complete. */
  append(bytes: Buffer, start: number, end: number, isEnd: boolean): RequestHeaders | undefined {
    this.#add(bytes, start, end);
    if (!isEnd) return undefined;
    const block = Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#bytes = 0;
    this.streamId = 0;
    return this.read(block, 0, block.length);
  }

  /** Decodes a complete block. The result may be shared by several requests: do not modify it. */
  read(bytes: Buffer, start: number, end: number): RequestHeaders {
    const known = this.#known;
    const { changes } = this.#decoder;
    if (
      known?.changes === changes &&
      known.block.length === end - start &&
      isAt(known.block, bytes, start)
    ) {
      return known.headers;
    }
    const headers = new RequestHeaders();
    this.#decoder.decode(bytes, start, end, headers);
    if (this.#decoder.changes === changes && end - start <= maxCachedBlockBytes) {
      this.#known = { block: Buffer.from(bytes.subarray(start, end)), changes, headers };
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
