import { open, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { systemCode } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import { SharedRuns } from '../core/turns.js';
import { entryOf, lineOf, type Entry } from './entry.js';
import { ledgerFile, makePrivate } from './files.js';

const chunkBytes = 1_048_576;
/** Far longer than any valid line: a longer one is damaged and must not fill the memory. */
const maxLineBytes = 65_536;
const lineBreak = 0x0a;

/** Reads the ledger, and each time after the first only what has been appended since. */
export class Ledger {
  #rows: Row[] = [];
  readonly #reading = new SharedRuns(() => this.#readOn());
  /** Offset of the first line that is not in the rows yet. */
  #offset = 0;
  #inode = 0;
  #broken = 0;

  constructor(
    private readonly file: string,
    private readonly log: Log,
  ) {}

  /** Lines that could not be read so far. */
  get broken(): number {
    return this.#broken;
  }

  /** All rows there are now. */
  async rows(): Promise<readonly Row[]> {
    await this.#reading.run();
    return this.#rows;
  }

  async #readOn(): Promise<void> {
    let handle: FileHandle;
    try {
      handle = await open(this.file, 'r');
    } catch (error) {
      if (!['ENOENT', 'ENOTDIR'].includes(systemCode(error))) throw error;
      return this.#startOver(0);
    }
    try {
      const { ino, size } = await handle.stat();
      // The file was replaced or truncated.
      if (ino !== this.#inode || size < this.#offset) this.#startOver(ino);
      await this.#readFrom(handle);
    } finally {
      await handle.close();
    }
  }

  #startOver(inode: number): void {
    this.#rows = [];
    this.#offset = 0;
    this.#inode = inode;
    this.#broken = 0;
  }

  async #readFrom(handle: FileHandle): Promise<void> {
    const buffer = Buffer.allocUnsafe(chunkBytes);
    let rest: Buffer = Buffer.alloc(0);
    // The bytes of a line that is too long are skipped.
    let isTooLong = false;
    for (;;) {
      const position = this.#offset + rest.length;
      const { bytesRead } = await handle.read(buffer, 0, chunkBytes, position);
      if (bytesRead === 0) break;
      const bytes = Buffer.concat([rest, buffer.subarray(0, bytesRead)]);
      const end = bytes.lastIndexOf(lineBreak) + 1;
      if (end > 0) {
        isTooLong = this.#take(bytes.subarray(0, end), isTooLong);
        this.#offset += end;
      }
      rest = bytes.subarray(end);
      if (rest.length > maxLineBytes) {
        isTooLong = true;
        this.#offset += rest.length;
        rest = Buffer.alloc(0);
      }
    }
    if (!isTooLong) this.#takeLast(rest);
  }

  /** Complete lines; with `startsInTooLong` the first one is the end of a line that is too long. */
  #take(lines: Buffer, startsInTooLong: boolean): false {
    let isSkipped = startsInTooLong;
    for (let start = 0; start < lines.length;) {
      const end = lines.indexOf(lineBreak, start);
      if (end - start > maxLineBytes) isSkipped = true;
      if (isSkipped) this.#reportBroken(this.#offset + start);
      else if (end > start) this.#takeLine(lines.subarray(start, end), start);
      isSkipped = false;
      start = end + 1;
    }
    return false;
  }

  #takeLine(line: Buffer, start: number): void {
    const entry = entryOf(line.toString('utf8'));
    if (entry) this.#rows.push(rowOf(entry));
    else this.#reportBroken(this.#offset + start);
  }

  /**
   * The last line may be incomplete, or torn by a crash: then it is not valid JSON, and is read
   * again next time. If it is valid, only its line break is missing.
   */
  #takeLast(line: Buffer): void {
    const entry = line.length === 0 ? undefined : entryOf(line.toString('utf8'));
    if (!entry) return;
    this.#rows.push(rowOf(entry));
    this.#offset += line.length;
  }

  #reportBroken(offset: number): void {
    this.#broken += 1;
    this.log.warn({ file: this.file, offset }, 'skipped unreadable line of the savings ledger');
  }
}

/**
 * Adds one line to the ledger; it is on disk when this resolves.
 *
 * The daemon and `ctl` append concurrently. O_APPEND writes are atomic, so each entry is one write.
 * A line torn by a crash is terminated first; when two processes do so, there is an empty line.
 */
export async function appendEntry(dataDir: string, entry: Entry): Promise<void> {
  const file = ledgerFile(dataDir);
  await makePrivate(dirname(file));
  const handle = await open(file, 'a+', 0o600);
  try {
    const { size } = await handle.stat();
    const isTorn = size > 0 && (await lastByte(handle, size)) !== lineBreak;
    const bytes = Buffer.from(`${isTorn ? '\n' : ''}${lineOf(entry)}\n`);
    const { bytesWritten } = await handle.write(bytes);
    if (bytesWritten !== bytes.length) {
      throw new Error(`${file}: only ${bytesWritten} of ${bytes.length} bytes were written`);
    }
    await handle.sync();
    if (size === 0) await syncFolder(dirname(file));
  } finally {
    await handle.close();
  }
}

async function lastByte(handle: FileHandle, size: number): Promise<number | undefined> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
  return bytesRead === 1 ? buffer[0] : undefined;
}

/** A new file is durable only after its directory is synced. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** A row of the ledger, without texts. */
export interface Row extends Omit<Entry, 'agentId' | 'repo' | 'basis'> {
  /** Tokens were counted by the provider, not derived from bytes. */
  isMeasured: boolean;
}

export function rowOf({ agentId: _agent, repo: _repo, basis, ...amounts }: Entry): Row {
  const { rawBytes, retainedBytes } = amounts;
  return { ...amounts, isMeasured: basis === 'MEASURED' || rawBytes + retainedBytes === 0 };
}
