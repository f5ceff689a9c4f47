import { hash } from 'node:crypto';
import { open, type FileHandle } from 'node:fs/promises';
import type { FileFacts, FoundFile } from './find-files.js';
import type { LineWalker } from './lines.js';
import {
  BrokenLine,
  type Conversations,
  type JsonObject,
  type LineReader,
  type TranscriptReader,
  type Detection,
} from './reader.js';

/** How far a transcript has been read. */
export interface FileState extends FileFacts {
  backend: string;
  /** Of the reader; absent: its first. */
  version?: number | undefined;
  /** Everything before this was counted; a line starts here. */
  offset: number;
  /** The bytes before the offset: if they differ, the file was replaced. */
  tail: string;
  /** The reader's state to continue from. */
  carry: unknown;
  /** Lines that could not be read, and the first of them. */
  broken: number;
  firstBroken: { offset: number; reason: string } | null;
}

export interface ScanSink {
  readonly conversations: Conversations;
  see(detection: Detection): void;
  /** Whether it is time to commit. */
  readonly isFull: boolean;
  /** Stores the detections together with the position in the file. */
  save(state: FileState): Promise<void>;
  /** Throws when the scan must stop. */
  checkStop(): void;
  /** Called while a file is read, with the offset and the number of bytes. */
  advance(path: string, offset: number, bytes: number): void;
}

/** Whether the file is unchanged since. */
export function isUnchanged(before: FileState, { inode, size, modifiedMs }: FileFacts): boolean {
  return before.inode === inode && before.size === size && before.modifiedMs === modifiedMs;
}

/** Reads what is new in a file. Returns the number of bytes. */
export async function scanFile(
  walker: LineWalker,
  found: FoundFile,
  before: FileState | undefined,
  sink: ScanSink,
): Promise<number> {
  const file = await open(found.path, 'r');
  try {
    const isSame = before !== undefined && (await goesOn(file, found, before));
    const scan = new FileScan(file, found, isSame ? before : undefined, sink);
    await scan.run(walker);
    return scan.bytesRead;
  } finally {
    await file.close();
  }
}

/**
 * A truncated, replaced or rewritten file is read from its start: messages are counted only once.
 */
async function goesOn(file: FileHandle, now: FileFacts, before: FileState): Promise<boolean> {
  if (before.inode !== now.inode || now.size < before.offset) return false;
  return (await tailAt(file, before.offset)) === before.tail;
}

const tailBytes = 256;

async function tailAt(file: FileHandle, offset: number): Promise<string> {
  const length = Math.min(tailBytes, offset);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, offset - length);
  return hash('sha256', buffer.subarray(0, bytesRead), 'hex').slice(0, 32);
}

class FileScan {
  readonly #reader: TranscriptReader;
  readonly #from: number;
  #lines: LineReader;
  #end: number;
  #advancedTo: number;
  #broken: number;
  #firstBroken: FileState['firstBroken'];

  constructor(
    private readonly file: FileHandle,
    private readonly found: FoundFile,
    before: FileState | undefined,
    private readonly sink: ScanSink,
  ) {
    const { reader, path } = found;
    this.#reader = reader;
    this.#lines = reader.begin(path, before?.carry, sink.conversations);
    this.#from = this.#end = this.#advancedTo = before?.offset ?? 0;
    this.#broken = before?.broken ?? 0;
    this.#firstBroken = before?.firstBroken ?? null;
  }

  get bytesRead(): number {
    return this.#end - this.#from;
  }

  async run(walker: LineWalker): Promise<void> {
    const markers = this.#reader.markers.map((marker) => Buffer.from(marker));
    const visitor = {
      line: (bytes: Buffer, offset: number) => this.#line(this.#lines, bytes, offset),
      broken: (offset: number, reason: string) => this.#note(offset, reason),
    };
    const { offset, rest } = await walker.walk(this.file, this.#from, markers, visitor, (at) =>
      this.#atPiece(at),
    );
    this.#end = offset;
    this.#advance(offset);
    if (rest) this.#peek(rest, offset);
    await this.sink.save(await this.#state(offset, this.found.size));
  }

  #atPiece(offset: number): Promise<void> | undefined {
    this.sink.checkStop();
    this.#advance(offset);
    if (!this.sink.isFull) return undefined;
    // No file has this size, so after a crash it is read again.
    return this.#state(offset, -1).then((state) => this.sink.save(state));
  }

  #advance(offset: number): void {
    this.sink.advance(this.found.path, offset, offset - this.#advancedTo);
    this.#advancedTo = offset;
  }

  async #state(offset: number, size: number): Promise<FileState> {
    const { path, inode, modifiedMs } = this.found;
    return {
      path,
      inode,
      size,
      modifiedMs,
      backend: this.#reader.backend,
      version: this.#reader.version,
      offset,
      tail: await tailAt(this.file, offset),
      carry: this.#lines.carry(),
      broken: this.#broken,
      firstBroken: this.#firstBroken,
    };
  }

  #line(lines: LineReader, bytes: Buffer, offset: number): void {
    try {
      const detection = lines.read(objectOf(bytes), offset);
      if (detection) this.sink.see(detection);
    } catch (error) {
      if (!(error instanceof BrokenLine)) throw error;
      this.#note(offset, error.message);
    }
  }

  /**
   * A last line without a line break is complete when it is a valid object. It is counted, and read
   * again later as the same message.
   */
  #peek(rest: Buffer, offset: number): void {
    let line: JsonObject;
    try {
      line = objectOf(rest);
    } catch {
      return;
    }
    const { reader, path } = this.found;
    const peeking = reader.begin(path, this.#lines.carry(), this.sink.conversations);
    try {
      const detection = peeking.read(line, offset);
      if (detection) this.sink.see(detection);
    } catch (error) {
      // It is counted as broken when its line break has arrived.
      if (!(error instanceof BrokenLine)) throw error;
    }
  }

  #note(offset: number, reason: string): void {
    this.#broken += 1;
    this.#firstBroken ??= { offset, reason };
  }
}

function objectOf(bytes: Buffer): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString('utf8'));
  } catch {
    throw new BrokenLine('is not JSON');
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as JsonObject;
  }
  throw new BrokenLine('is not a JSON object');
}
