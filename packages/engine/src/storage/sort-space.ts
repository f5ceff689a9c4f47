import { closeSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { deserialize, serialize } from 'node:v8';
import { refuse } from '../value/documents.js';
import { isDiskFull } from './file/files.js';

// All sorts and aggregates of a database share this much memory; what needs more uses a temporary
// file.
const defaultMaxBytes = 64 * 1024 * 1024;
const minSharers = 4;

/**
 * The memory for sorts and aggregates of one database, and the directory of their temporary files.
 */
export class SortSpace {
  /** Memory of the values of count_distinct, over all running queries. */
  distinctBytes = 0;
  #active = 0;
  #nextFile = 1;

  constructor(
    private readonly directory: string,
    private readonly maxBytes = defaultMaxBytes,
  ) {}

  /** Counts a sort as active until the returned function is called. */
  enter(): () => void {
    this.#active++;
    return () => void this.#active--;
  }

  /** Bytes that one sort may keep in memory now. */
  get share(): number {
    return this.maxBytes / Math.max(this.#active, minSharers);
  }

  openFile(): SpillFile {
    const path = join(this.directory, `sort-${process.pid}-${this.#nextFile++}.tmp`);
    const file = openSync(path, 'wx+', 0o600);
    // An unlinked file does not outlive the process.
    unlinkSync(path);
    return new SpillFile(file, path);
  }
}

/** Location of a block of items in a spill file. */
export interface Block {
  readonly at: number;
  readonly length: number;
}

/**
 * Blocks of items in an open file. Reads and writes are synchronous, like those of the store: they
 * are served by the page cache.
 */
export class SpillFile {
  #end = 0;

  constructor(
    private readonly file: number,
    private readonly path: string,
  ) {}

  write(items: readonly unknown[]): Block {
    const bytes = serialize(items);
    const at = this.#end;
    try {
      for (let done = 0; done < bytes.length;) {
        done += writeSync(this.file, bytes, done, bytes.length - done, at + done);
      }
    } catch (error) {
      throw isDiskFull(error, this.path) ? noRoom(error) : error;
    }
    this.#end += bytes.length;
    return { at, length: bytes.length };
  }

  read({ at, length }: Block): unknown {
    const bytes = Buffer.allocUnsafe(length);
    for (let done = 0; done < length;) {
      const count = readSync(this.file, bytes, done, length - done, at + done);
      if (count === 0) throw new Error(`the temporary file of a query ends at ${at + done}`);
      done += count;
    }
    return deserialize(bytes);
  }

  close(): void {
    closeSync(this.file);
  }
}

function noRoom(cause: unknown): Error {
  return refuse(
    'DISK_FULL',
    'The disk has no room for the temporary file of this query. Free some space, set a limit, ' +
      'narrow the filter, or declare an index with the fields of the order.',
    undefined,
    { cause },
  );
}
