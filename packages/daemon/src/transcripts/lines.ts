import type { FileHandle } from 'node:fs/promises';

export interface LineVisitor {
  /** A complete line that contains a marker, without its line break. The buffer is reused. */
  line(bytes: Buffer, offset: number): void;
  /** A line that does not start and end like a JSON object. */
  broken(offset: number, reason: string): void;
}

export interface Scanned {
  /** The offset after the last complete line. */
  offset: number;
  /** The incomplete line after it, if it contains a marker. */
  rest: Buffer | undefined;
}

const newline = 0x0a;
const carriageReturn = 0x0d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/**
 * Reads files line by line in large pieces. In every line only the line break is searched; the
 * markers are searched once over the whole piece. A walker has one buffer, so it reads one file at
 * a time.
 */
export class LineWalker {
  #buffer: Buffer;

  constructor(
    private readonly pieceBytes = 512 * 1024,
    private readonly maxLineBytes = 64 * 1024 * 1024,
  ) {
    this.#buffer = Buffer.allocUnsafe(pieceBytes);
  }

  /** From `from`, the start of a line, to the end of the file. */
  async walk(
    file: FileHandle,
    from: number,
    markers: readonly Buffer[],
    visitor: LineVisitor,
    onPiece: (offset: number) => Promise<void> | undefined = () => undefined,
  ): Promise<Scanned> {
    /** The file offset of the buffer, and its used length. */
    let base = from;
    let filled = 0;
    /** Offset of a line that is too long, while its end is searched. */
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

/** Visits every complete line and returns the offset of the first incomplete one. */
function visitLines(
  bytes: Buffer,
  from: number,
  base: number,
  markers: readonly Buffer[],
  visitor: LineVisitor,
): number {
  // The next position of each marker; after the end when there is none.
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
