import { closeSync, existsSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { endianness } from 'node:os';
import { basename } from 'node:path';
import { refuse } from '../../value/documents.js';

export interface StoreFileOptions {
  /** Check every page in use, not only when pages seem to be missing. */
  thorough?: boolean;
}

/**
 * LMDB maps its file into memory and trusts it: a truncated file, or one of another kind, ends the
 * whole process with a bus error or worse. So the file is checked before LMDB opens it. That costs
 * two reads, unless the file is shorter than its last page: LMDB does not write free pages at the
 * end, so then every page in use is checked.
 */
export function checkStoreFile(path: string, { thorough = false }: StoreFileOptions = {}): void {
  // The offsets below are for little-endian machines; all supported ones are.
  if (endianness() !== 'LE') return;
  const file = openSync(path, 'r');
  try {
    new StoreFile(file, basename(path)).check(thorough);
  } finally {
    closeSync(file);
  }
}

/** Whether the file exists and is not empty. */
export function hasBytes(path: string): boolean {
  return existsSync(path) && statSync(path).size > 0;
}

const magic = 0xbeefc0de;
const dataVersion = 2;
/** The head of every page: number u64, transaction u64, pad u16, flags u16, ends u32. */
const headLength = 24;
const pageFlags = { branch: 1, leaf: 2, meta: 8 };
const nodeFlags = { overflow: 1, table: 2 };
/** The root is the last field of a table's description. */
const tableLength = 48;
const none = 0xffffffffffffffffn;

interface Meta {
  pageSize: number;
  roots: bigint[];
  lastPage: number;
  txn: bigint;
}

class StoreFile {
  readonly #size: number;
  readonly #seen = new Set<bigint>();

  constructor(
    private readonly file: number,
    private readonly name: string,
  ) {
    this.#size = fstatSync(file).size;
  }

  check(thorough: boolean): void {
    const first = this.#meta(0);
    const second = this.#meta(first.pageSize);
    const meta = second.txn > first.txn ? second : first;
    const pages = Math.floor(this.#size / meta.pageSize);
    if (pages > meta.lastPage && !thorough) return;
    for (const root of meta.roots) this.#walk(root, meta, pages);
  }

  #meta(at: number): Meta {
    const page = this.#read(at, headLength + 136);
    if (
      !(page.readUInt16LE(18) & pageFlags.meta) ||
      page.readUInt32LE(headLength) !== magic ||
      (page.readUInt32LE(headLength + 4) & 0xffff) !== dataVersion
    ) {
      throw this.#damaged('does not begin as one');
    }
    const tables = headLength + 24;
    const pageSize = page.readUInt32LE(tables);
    if (pageSize < 512 || pageSize > 65_536 || pageSize & (pageSize - 1)) {
      throw this.#damaged(`says that its pages have ${pageSize} bytes`);
    }
    return {
      pageSize,
      roots: [0, 1].map((i) => page.readBigUInt64LE(tables + (i + 1) * tableLength - 8)),
      lastPage: Number(page.readBigUInt64LE(tables + 2 * tableLength)),
      txn: page.readBigUInt64LE(tables + 2 * tableLength + 8),
    };
  }

  /** Checks every page of a tree. */
  #walk(number: bigint, meta: Meta, pages: number): void {
    if (number === none) return;
    if (number >= pages) throw this.#pageMissing(meta);
    const page = this.#read(Number(number) * meta.pageSize, meta.pageSize);
    const flags = page.readUInt16LE(18);
    const isBranch = (flags & pageFlags.branch) !== 0;
    const isKnown = isBranch || (flags & pageFlags.leaf) !== 0;
    // A page that is referenced twice would cause an endless loop.
    if (page.readBigUInt64LE(0) !== number || !isKnown || this.#seen.has(number)) {
      throw this.#damaged(`has something else in the place of page ${number}`);
    }
    this.#seen.add(number);
    const nodes = page.readUInt16LE(20) >>> 1;
    for (let i = 0; i < nodes; i++) {
      try {
        const node = page.subarray(headLength + page.readUInt16LE(headLength + 2 * i));
        if (isBranch) this.#walk(BigInt(node.readUIntLE(0, 6)), meta, pages);
        else this.#leaf(node, meta, pages);
      } catch (error) {
        if (error instanceof RangeError) throw this.#damaged(`has rubbish in page ${number}`);
        throw error;
      }
    }
  }

  #leaf(node: Buffer, meta: Meta, pages: number): void {
    const flags = node.readUInt16LE(4);
    const value = node.subarray(8 + node.readUInt16LE(6));
    if (flags & nodeFlags.table) this.#walk(value.readBigUInt64LE(tableLength - 8), meta, pages);
    else if (flags & nodeFlags.overflow) {
      const end = value.readBigUInt64LE(0) + value.readBigUInt64LE(16);
      if (end > pages) throw this.#pageMissing(meta);
    }
  }

  #read(at: number, length: number): Buffer {
    const bytes = Buffer.alloc(length);
    if (readSync(this.file, bytes, 0, length, at) < length) {
      throw this.#damaged(`ends after ${this.#size} bytes`);
    }
    return bytes;
  }

  /** The error for a referenced page that is not in the file. */
  #pageMissing({ lastPage, pageSize }: Meta) {
    const expected = (lastPage + 1) * pageSize;
    if (this.#size >= expected) return this.#damaged('refers to a page that it cannot have');
    return this.#damaged(`was cut short: it has ${this.#size} of ${expected} bytes`);
  }

  #damaged(what: string) {
    return refuse(
      'CORRUPT',
      `${this.name} is not an intact store: it ${what}. Nothing was changed; put the file back as ` +
        'it was, or restore a backup into a new directory.',
    );
  }
}
