import { framingFields, parseField } from './response-head.js';
import { malformed } from '../base/failure.js';

// Below 2^52, so that a number holds it exactly.
const size = '[0-9A-Fa-f]{1,13}';
const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const quoted = '"(?:[\\t !#-\\[\\]-~\\x80-\\xff]|\\\\[\\t -~\\x80-\\xff])*"';
const sizeLine = new RegExp(`^(${size})(?:;${token}(?:=(?:${token}|${quoted}))?)*$`);
const startOfSizeLine = new RegExp(`^${size}(?:\\r?$|;)`);
/** Total of chunk extensions and trailers in one response, which are ignored. */
const maxIgnoredBytes = 16_384;

/**
 * Decodes a chunked body (RFC 9112, 7.1) incrementally. `read` passes body bytes to `take` and
 * returns the offset it reached.
 */
export class ChunkReader {
  isComplete = false;
  #expects: 'size' | 'bytes' | 'gap' | 'trailer' = 'size';
  #left = 0;
  /** The current, incomplete line. */
  #line = '';
  #ignoredBytes = 0;

  /** Returns the offset after the last byte of the body; -1 when `take` returned false. */
  read(bytes: Buffer, start: number, take: (part: Buffer) => boolean): number {
    let at = start;
    while (at < bytes.length && !this.isComplete) {
      if (this.#expects === 'bytes') {
        const end = Math.min(at + this.#left, bytes.length);
        if (!take(bytes.subarray(at, end))) return -1;
        this.#left -= end - at;
        at = end;
        if (this.#left === 0) this.#expects = 'gap';
        continue;
      }
      const lineEnd = bytes.indexOf(10, at);
      this.#line += bytes.toString('latin1', at, lineEnd < 0 ? bytes.length : lineEnd);
      if (this.#line.length > maxIgnoredBytes)
        throw malformed('a line of the chunked body is too long');
      if (lineEnd < 0) {
        this.#checkStart();
        return bytes.length;
      }
      at = lineEnd + 1;
      if (!this.#line.endsWith('\r')) throw malformed('a line of the chunked body ends without CR');
      this.#lineEnded(this.#line.slice(0, -1));
      this.#line = '';
    }
    return at;
  }

  #lineEnded(line: string): void {
    if (this.#expects === 'gap') {
      if (line !== '') throw malformed('a chunk is longer than its size');
      this.#expects = 'size';
    } else if (this.#expects === 'size') this.#sizeArrived(line);
    else if (line === '') this.isComplete = true;
    else this.#trailerArrived(line);
  }

  #trailerArrived(line: string): void {
    const field = parseField(line);
    if (field === undefined) throw malformed('a trailer line is not a header field');
    if (framingFields.has(field.name)) throw malformed('a trailer contains a framing field');
    this.#countIgnored(line.length);
  }

  #sizeArrived(line: string): void {
    const digits = sizeLine.exec(line)?.[1];
    if (digits === undefined) throw malformed('a chunk size is not a hexadecimal number');
    this.#countIgnored(line.length - digits.length);
    this.#left = Number.parseInt(digits, 16);
    this.#expects = this.#left === 0 ? 'trailer' : 'bytes';
  }

  #countIgnored(count: number): void {
    this.#ignoredBytes += count;
    if (this.#ignoredBytes > maxIgnoredBytes)
      throw malformed('the chunk extensions and trailers are too long');
  }

  /** Rejects an incomplete line that cannot become valid. */
  #checkStart(): void {
    const isRight =
      this.#expects === 'gap'
        ? this.#line === '\r'
        : this.#expects !== 'size' || startOfSizeLine.test(this.#line);
    if (!isRight) throw malformed('the chunk framing is invalid');
  }
}
