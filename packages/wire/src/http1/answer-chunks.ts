import { framingFields, readField } from './answer-head.js';
import { malformed } from './failure.js';

// Up to 2^52, so that it can be counted exactly.
const size = '[0-9A-Fa-f]{1,13}';
const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const quoted = '"(?:[\\t !#-\\[\\]-~\\x80-\\xff]|\\\\[\\t -~\\x80-\\xff])*"';
const sizeLine = new RegExp(`^(${size})(?:;${token}(?:=(?:${token}|${quoted}))?)*$`);
const startOfSizeLine = new RegExp(`^${size}(?:\\r?$|;)`);
/** Of extensions and trailers in one response, which nobody here reads. */
const mostAsideBytes = 16_384;

/**
 * Takes a body out of its chunks, in whatever pieces it arrives. Handed the bytes of one read, it
 * gives their parts to `take` and says how far it got.
 */
export class ChunkReader {
  isWhole = false;
  #expects: 'size' | 'bytes' | 'gap' | 'trailer' = 'size';
  #left = 0;
  /** What there is of a line that has not ended yet. */
  #line = '';
  #asideBytes = 0;

  /** The place behind the last byte that belongs to the body; -1 when `take` wants no more. */
  read(bytes: Buffer, start: number, take: (part: Buffer) => boolean): number {
    let at = start;
    while (at < bytes.length && !this.isWhole) {
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
      if (this.#line.length > mostAsideBytes) throw malformed('its chunks have overlong lines');
      if (lineEnd < 0) {
        this.#checkStart();
        return bytes.length;
      }
      at = lineEnd + 1;
      if (!this.#line.endsWith('\r')) throw malformed('a line of its chunks ends without CR');
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
    else if (line === '') this.isWhole = true;
    else this.#trailerArrived(line);
  }

  #trailerArrived(line: string): void {
    const field = readField(line);
    if (field === undefined) throw malformed('a line of its trailers is no header');
    if (framingFields.has(field.name)) throw malformed('its trailers say where it ends');
    this.#setAside(line.length);
  }

  #sizeArrived(line: string): void {
    const digits = sizeLine.exec(line)?.[1];
    if (digits === undefined) throw malformed('the size of a chunk is not a number');
    this.#setAside(line.length - digits.length);
    this.#left = Number.parseInt(digits, 16);
    this.#expects = this.#left === 0 ? 'trailer' : 'bytes';
  }

  #setAside(count: number): void {
    this.#asideBytes += count;
    if (this.#asideBytes > mostAsideBytes) throw malformed('its chunks say too much aside');
  }

  /** Nobody waits for the end of a line that cannot become a right one. */
  #checkStart(): void {
    const isRight =
      this.#expects === 'gap'
        ? this.#line === '\r'
        : this.#expects !== 'size' || startOfSizeLine.test(this.#line);
    if (!isRight) throw malformed('its chunks cannot be told apart');
  }
}
