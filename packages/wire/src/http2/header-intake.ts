import { HpackDecoder } from './hpack-decoder.js';
import { ConnectionError } from './protocol.js';
import { RequestHeaders } from './request-headers.js';

// Four times what a list may have: enough to tell by a stream's error that it is too large.
const mostBlockBytes = 64 * 1024;
const mostPieces = 32;
const longestKnownBytes = 512;

/** Header blocks on their way in: puts the pieces together and reads them. */
export class HeaderIntake {
  readonly #decoder = new HpackDecoder();
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** The last block that changed no table, and what it said: many callers repeat themselves. */
  #known: { block: Buffer; changes: number; headers: RequestHeaders } | undefined;
  /** The stream whose block goes on in the next frame; 0: none. */
  streamId = 0;
  isLast = false;

  /** A block begins that is not complete. */
  begin(streamId: number, isLast: boolean, bytes: Buffer, start: number, end: number): void {
    this.streamId = streamId;
    this.isLast = isLast;
    this.#add(bytes, start, end);
  }

  /** It goes on; the headers when it is complete. */
  goOn(bytes: Buffer, start: number, end: number, isEnd: boolean): RequestHeaders | undefined {
    this.#add(bytes, start, end);
    if (!isEnd) return undefined;
    const block = Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#bytes = 0;
    this.streamId = 0;
    return this.read(block, 0, block.length);
  }

  /** What a whole block says. It belongs to several requests: nobody may change it. */
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
    if (this.#decoder.changes === changes && end - start <= longestKnownBytes) {
      this.#known = { block: Buffer.from(bytes.subarray(start, end)), changes, headers };
    }
    return headers;
  }

  #add(bytes: Buffer, start: number, end: number): void {
    // The rest of the chunk must not wait with it.
    this.#pieces.push(Buffer.from(bytes.subarray(start, end)));
    this.#bytes += end - start;
    if (this.#bytes > mostBlockBytes || this.#pieces.length > mostPieces) {
      throw new ConnectionError('ENHANCE_YOUR_CALM', 'headers have no end');
    }
  }
}

/** Whether `block` stands in `bytes` at `start`. Most are so short that a call out costs more. */
function isAt(block: Buffer, bytes: Buffer, start: number): boolean {
  for (let i = 0; i < block.length; i++) if (block[i] !== bytes[start + i]) return false;
  return true;
}
