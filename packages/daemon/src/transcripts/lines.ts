import type { FileHandle } from 'node:fs/promises';

export interface LineVisitor {
  /** A whole line that holds one of the markers, without its end. The bytes are lent. */
  line(bytes: Buffer, offset: number): void;
  /** A line that is no JSON object at all, by the looks of its ends. */
  broken(offset: number, reason: string): void;
}

export interface Scanned {
  /** Just behind the last whole line. */
  offset: number;
  /** What stands behind it without an end, if it holds a marker: it may be half a line. */
  rest: Buffer | undefined;
}

const newline = 0x0a;
const carriageReturn = 0x0d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/**
 * Walks through files line by line in large pieces. Only where a line ends is looked for in every
 * line; the rest is one search for the markers over the whole piece. One walker has one buffer,
 * so it walks through one file at a time.
 */
export class LineWalker {
  #buffer: Buffer;

  constructor(
    private readonly pieceBytes = 512 * 1024,
    private readonly maxLineBytes = 64 * 1024 * 1024,
  ) {
    this.#buffer = Buffer.allocUnsafe(pieceBytes);
  }

  /** From `from`, where a line begins, to the end of the file. */
  async walk(
    file: FileHandle,
    from: number,
    markers: readonly Buffer[],
    visitor: LineVisitor,
    onPiece: (offset: number) => Promise<void> | undefined = () => undefined,
  ): Promise<Scanned> {
    /** Where in the file the buffer begins, and how much of it is filled. */
    let base = from;
    let filled = 0;
    /** Where a line begins that is too long to be kept, while its end is looked for. */
    let skipped: number | undefined;
    for (;;) {
      const { bytesRead } = await file.read(
        this.#buffer,
        filled,
        this.#buffer.length - filled,
        base + filled,
      );
      if (bytesRead === 0) break;
      filled += bytesRead;
      let used = 0;
      if (skipped !== undefined) {
        const end = this.#buffer.subarray(0, filled).indexOf(newline);
        used = end < 0 ? filled : end + 1;
        if (end >= 0) {
          visitor.broken(skipped, `is longer than ${this.maxLineBytes} bytes`);
          skipped = undefined;
        }
      }
      used = visitLines(this.#buffer.subarray(0, filled), used, base, markers, visitor);
      this.#buffer.copyWithin(0, used, filled);
      base += used;
      filled -= used;
      if (filled === this.#buffer.length && !this.#grow()) {
        skipped = base;
        base += filled;
        filled = 0;
      }
      await onPiece(skipped ?? base);
    }
    const rest = Buffer.from(this.#buffer.subarray(0, filled));
    if (this.#buffer.length > this.pieceBytes) this.#buffer = Buffer.allocUnsafe(this.pieceBytes);
    return { offset: skipped ?? base, rest: holdsAny(rest, markers) ? rest : undefined };
  }

  #grow(): boolean {
    if (this.#buffer.length >= this.maxLineBytes) return false;
    const length = Math.min(this.#buffer.length * 2, this.maxLineBytes);
    const larger = Buffer.allocUnsafe(length);
    this.#buffer.copy(larger);
    this.#buffer = larger;
    return true;
  }
}

/** Visits every whole line and answers where the first one begins that is not. */
function visitLines(
  bytes: Buffer,
  from: number,
  base: number,
  markers: readonly Buffer[],
  visitor: LineVisitor,
): number {
  // Where each marker is next; behind the end when it is nowhere.
  const next = markers.map(() => -1);
  let start = from;
  for (;;) {
    const end = bytes.indexOf(newline, start);
    if (end < 0) return start;
    const stop = end > start && bytes[end - 1] === carriageReturn ? end - 1 : end;
    if (stop > start) {
      if (bytes[start] !== openBrace || bytes[stop - 1] !== closeBrace) {
        visitor.broken(base + start, 'is not a JSON object');
      } else if (isMarked(bytes, start, stop, markers, next)) {
        visitor.line(bytes.subarray(start, stop), base + start);
      }
    }
    start = end + 1;
  }
}

function isMarked(
  bytes: Buffer,
  start: number,
  stop: number,
  markers: readonly Buffer[],
  next: number[],
): boolean {
  let found = false;
  for (let each = 0; each < markers.length; each++) {
    let at = next[each]!;
    if (at < start) {
      at = bytes.indexOf(markers[each]!, start);
      if (at < 0) at = bytes.length;
      next[each] = at;
    }
    found ||= at < stop;
  }
  return found;
}

function holdsAny(bytes: Buffer, markers: readonly Buffer[]): boolean {
  return markers.some((marker) => bytes.includes(marker));
}
