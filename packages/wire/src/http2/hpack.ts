import { ConnectionError } from './frames.js';

/** How the server treats a field, determined once per field name. */
export const roles = {
  /** Ignored. */
  other: 0,
  /** Not allowed in a request. */
  malformed: 1,
  /** One of the pseudo-header fields. */
  pseudo: 2,
  length: 3,
  /** Read by the server. */
  stored: 4,
} as const;

type Role = (typeof roles)[keyof typeof roles];

const rolesByName: ReadonlyMap<string, Role> = new Map<string, Role>([
  [':method', roles.pseudo],
  [':scheme', roles.pseudo],
  [':path', roles.pseudo],
  [':authority', roles.pseudo],
  ['content-length', roles.length],
  ['content-type', roles.stored],
  ['grpc-timeout', roles.stored],
  ['grpc-encoding', roles.stored],
  ['x-api-key', roles.stored],
  ['authorization', roles.stored],
  // Connection-specific fields are malformed in HTTP/2 (RFC 9113, 8.2.2).
  ['connection', roles.malformed],
  ['keep-alive', roles.malformed],
  ['proxy-connection', roles.malformed],
  ['transfer-encoding', roles.malformed],
  ['upgrade', roles.malformed],
]);

const overheadBytes = 32;

/** One header field, with its size by RFC 7541, 4.1. */
export class Field {
  readonly bytes: number;
  readonly role: Role;

  constructor(
    readonly name: string,
    readonly value: string,
  ) {
    this.bytes = name.length + value.length + overheadBytes;
    this.role = roleOf(name, value);
  }
}

// Lowercase tokens.
const nameForm = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
// No control characters except tabs, no leading or trailing whitespace.
const valueForm = /^(?:[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)?$/;

function roleOf(name: string, value: string): Role {
  if (!valueForm.test(value)) return roles.malformed;
  const role = rolesByName.get(name);
  if (role !== undefined) return role;
  if (name === 'te' && value !== 'trailers') return roles.malformed;
  return nameForm.test(name) ? roles.other : roles.malformed;
}

const staticFields: readonly Field[] = (
  [
    [':authority', ''],
    [':method', 'GET'],
    [':method', 'POST'],
    [':path', '/'],
    [':path', '/index.html'],
    [':scheme', 'http'],
    [':scheme', 'https'],
    [':status', '200'],
    [':status', '204'],
    [':status', '206'],
    [':status', '304'],
    [':status', '400'],
    [':status', '404'],
    [':status', '500'],
    ['accept-charset', ''],
    ['accept-encoding', 'gzip, deflate'],
    ['accept-language', ''],
    ['accept-ranges', ''],
    ['accept', ''],
    ['access-control-allow-origin', ''],
    ['age', ''],
    ['allow', ''],
    ['authorization', ''],
    ['cache-control', ''],
    ['content-disposition', ''],
    ['content-encoding', ''],
    ['content-language', ''],
    ['content-length', ''],
    ['content-location', ''],
    ['content-range', ''],
    ['content-type', ''],
    ['cookie', ''],
    ['date', ''],
    ['etag', ''],
    ['expect', ''],
    ['expires', ''],
    ['from', ''],
    ['host', ''],
    ['if-match', ''],
    ['if-modified-since', ''],
    ['if-none-match', ''],
    ['if-range', ''],
    ['if-unmodified-since', ''],
    ['last-modified', ''],
    ['link', ''],
    ['location', ''],
    ['max-forwards', ''],
    ['proxy-authenticate', ''],
    ['proxy-authorization', ''],
    ['range', ''],
    ['referer', ''],
    ['refresh', ''],
    ['retry-after', ''],
    ['server', ''],
    ['set-cookie', ''],
    ['strict-transport-security', ''],
    ['transfer-encoding', ''],
    ['user-agent', ''],
    ['vary', ''],
    ['via', ''],
    ['www-authenticate', ''],
  ] as const
).map(([name, value]) => new Field(name, value));

/** Index of a name, or of a name and value, in the static table; 0: not found. */
function staticIndexOf(name: string, value?: string): number {
  return (
    1 + staticFields.findIndex((each) => each.name === name && (value ?? each.value) === each.value)
  );
}

/** Max size of the dynamic table: the default of SETTINGS_HEADER_TABLE_SIZE. */
const tableBytes = 4_096;
const slots = tableBytes / 32;

/** The HPACK index space: 61 static entries, then the dynamic table, newest first. */
class HeaderTable {
  readonly #recent: (Field | undefined)[] = [];
  #newest = 0;
  #count = 0;
  #bytes = 0;
  #maxBytes = tableBytes;
  /** Incremented whenever an index may mean another field. */
  changes = 0;

  /** Undefined when there is no such entry. */
  at(index: number): Field | undefined {
    if (index <= staticFields.length) return staticFields[index - 1];
    const age = index - staticFields.length - 1;
    return age < this.#count ? this.#recent[(this.#newest - age + slots) % slots] : undefined;
  }

  add(field: Field): void {
    this.changes++;
    this.#shrinkTo(this.#maxBytes - field.bytes);
    if (field.bytes > this.#maxBytes) return;
    this.#newest = (this.#newest + 1) % slots;
    this.#recent[this.#newest] = field;
    this.#count++;
    this.#bytes += field.bytes;
  }

  /** False when it exceeds the limit. */
  resize(maxBytes: number): boolean {
    if (maxBytes > tableBytes) return false;
    this.changes++;
    this.#maxBytes = maxBytes;
    this.#shrinkTo(maxBytes);
    return true;
  }

  #shrinkTo(bytes: number): void {
    while (this.#count > 0 && this.#bytes > bytes) {
      const oldest = (this.#newest - this.#count + 1 + slots) % slots;
      this.#bytes -= this.#recent[oldest]!.bytes;
      this.#recent[oldest] = undefined;
      this.#count--;
    }
  }
}

// Code lengths of RFC 7541, Appendix B. The code is canonical: shorter codes come first, and codes
// of one length are ordered by symbol, so the lengths define it.
const codeLengths = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
  28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5,
  6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6,
  7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23,
  23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22,
  22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22,
  23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27,
  27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25,
  24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];
const endOfString = 256;
const lengths = [...codeLengths, 30];
const minCodeBits = 5;

/**
 * Consecutive tables of 256 entries; the first decodes the first 8 bits of a code. An entry is
 * `bits << 9 | symbol` for a code that ends after `bits` bits, or the negated number of the table
 * for the next 8 bits.
 */
const tables = decodingTables();

function decodingTables(): Int32Array {
  const entries: number[] = Array.from({ length: 256 }, () => 0);
  let code = 0;
  let codeBits = 0;
  const symbols = lengths.map((_, symbol) => symbol);
  symbols.sort((a, b) => lengths[a]! - lengths[b]! || a - b);
  for (const symbol of symbols) {
    const bits = lengths[symbol]!;
    code = code * 2 ** (bits - codeBits);
    codeBits = bits;
    placeCode(entries, symbol, code, bits);
    code++;
  }
  return Int32Array.from(entries);
}

function placeCode(entries: number[], symbol: number, code: number, bits: number): void {
  let table = 0;
  let left = bits;
  for (; left > 8; left -= 8) {
    const at = table * 256 + (Math.floor(code / 2 ** (left - 8)) & 0xff);
    if (entries[at] === 0) {
      entries[at] = -(entries.length / 256);
      entries.push(...Array.from({ length: 256 }, () => 0));
    }
    table = -entries[at]!;
  }
  const first = table * 256 + ((code * 2 ** (8 - left)) & 0xff);
  entries.fill((left << 9) | symbol, first, first + 2 ** (8 - left));
}

let scratch = Buffer.allocUnsafeSlow(4_096);

/** Decodes the bytes from `start` to `end`. */
function huffmanDecoded(bytes: Buffer, start: number, end: number): string {
  const maxLength = Math.ceil(((end - start) * 8) / minCodeBits);
  if (scratch.length < maxLength) scratch = Buffer.allocUnsafeSlow(2 * maxLength);
  let length = 0;
  let table = 0;
  let pending = 0;
  let pendingBits = 0;
  let codeBits = 0;
  for (let at = start; at < end; at++) {
    pending = ((pending << 8) | bytes[at]!) & 0xffff;
    pendingBits += 8;
    while (pendingBits >= 8) {
      const entry = tables[table * 256 + ((pending >> (pendingBits - 8)) & 0xff)]!;
      if (entry < 0) {
        table = -entry;
        pendingBits -= 8;
        codeBits += 8;
      } else {
        if ((entry & 0x1ff) === endOfString) throw notHuffman();
        scratch[length++] = entry;
        pendingBits -= entry >> 9;
        table = 0;
        codeBits = 0;
      }
    }
  }
  // The rest may hold short codes, then up to 7 bits of EOS padding, which are ones.
  for (;;) {
    const ones = (1 << (8 - pendingBits)) - 1;
    const entry = tables[table * 256 + (((pending << (8 - pendingBits)) | ones) & 0xff)]!;
    if (entry < 0 || entry >> 9 > pendingBits) break;
    if ((entry & 0x1ff) === endOfString) throw notHuffman();
    scratch[length++] = entry;
    pendingBits -= entry >> 9;
    table = 0;
    codeBits = 0;
  }
  const padding = (1 << pendingBits) - 1;
  if (codeBits > 0 || (pending & padding) !== padding) throw notHuffman();
  return scratch.toString('latin1', 0, length);
}

function notHuffman(): ConnectionError {
  return new ConnectionError('COMPRESSION_ERROR', 'HPACK: invalid Huffman code');
}

/** Dynamic table size update to 0: our encoder never uses the dynamic table. */
export const emptyTable = Buffer.of(0x20);

/** Header fields with their encoded HPACK block. */
export class HeaderList {
  #block: Buffer | undefined;

  constructor(readonly fields: Readonly<Record<string, string>>) {}

  /** A header block without dynamic table entries, valid on every connection. */
  get block(): Buffer {
    return (this.#block ??= headerBlock(this.fields));
  }
}

/**
 * A header block without dynamic table references: it is valid on every connection, and no field
 * is added to the peer's table.
 */
export function headerBlock(fields: Readonly<Record<string, string>>): Buffer {
  return Buffer.concat(Object.entries(fields).flatMap(([name, value]) => encoded(name, value)));
}

function encoded(name: string, value: string): Buffer[] {
  const whole = staticIndexOf(name, value);
  if (whole > 0) return [number(0x80, 0x7f, whole)];
  const index = staticIndexOf(name);
  const named = index > 0 ? [number(0, 0x0f, index)] : [number(0, 0x0f, 0), ...string(name)];
  return [...named, ...string(value)];
}

function string(text: string): Buffer[] {
  const bytes = Buffer.from(text, 'latin1');
  return [number(0, 0x7f, bytes.length), bytes];
}

/** An HPACK integer. `first` holds the bits above the prefix `mask`. */
function number(first: number, mask: number, value: number): Buffer {
  if (value < mask) return Buffer.of(first | value);
  const bytes = [first | mask];
  let rest = value - mask;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  bytes.push(rest);
  return Buffer.from(bytes);
}

/** Receives the fields of a header block in order. */
export interface FieldSink {
  take(field: Field): void;
}

// Far above every valid length or index.
const maxInteger = 2 ** 24;

/** Decodes all header blocks of one connection in order (RFC 7541). */
export class HpackDecoder {
  readonly #table = new HeaderTable();
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;
  #end = 0;

  /** Incremented when the same block may decode differently than before. */
  get changes(): number {
    return this.#table.changes;
  }

  /** Throws a ConnectionError, after which no other block can be decoded. */
  decode(block: Buffer, start: number, end: number, sink: FieldSink): void {
    this.#bytes = block;
    this.#at = start;
    this.#end = end;
    let mayResize = true;
    while (this.#at < end) {
      const first = block[this.#at]!;
      if (first >= 0x80) sink.take(this.#indexed(this.#number(0x7f)));
      else if (first >= 0x40) {
        const field = this.#literal(0x3f);
        this.#table.add(field);
        sink.take(field);
      } else if (first < 0x20) sink.take(this.#literal(0x0f));
      else {
        if (!mayResize) throw compressionError('table size update after a field');
        if (!this.#table.resize(this.#number(0x1f)))
          throw compressionError('table size update exceeds the limit');
        continue;
      }
      mayResize = false;
    }
  }

  #indexed(index: number): Field {
    const field = index === 0 ? undefined : this.#table.at(index);
    if (!field) throw compressionError(`invalid index ${index}`);
    return field;
  }

  #literal(mask: number): Field {
    const index = this.#number(mask);
    const name = index === 0 ? this.#string() : this.#indexed(index).name;
    return new Field(name, this.#string());
  }

  /** An integer with the prefix `mask` (RFC 7541, 5.1). */
  #number(mask: number): number {
    const bytes = this.#bytes;
    let value = bytes[this.#at++]! & mask;
    if (value < mask) return value;
    for (let scale = 1; ; scale *= 128) {
      if (this.#at >= this.#end) throw compressionError('incomplete integer');
      const byte = bytes[this.#at++]!;
      value += (byte & 0x7f) * scale;
      if (value > maxInteger || scale > maxInteger) throw compressionError('integer too large');
      if (byte < 0x80) return value;
    }
  }

  #string(): string {
    if (this.#at >= this.#end) throw compressionError('incomplete field');
    const isHuffman = this.#bytes[this.#at]! >= 0x80;
    const length = this.#number(0x7f);
    const start = this.#at;
    if (length > this.#end - start) throw compressionError('incomplete string');
    this.#at = start + length;
    return isHuffman
      ? huffmanDecoded(this.#bytes, start, this.#at)
      : this.#bytes.toString('latin1', start, this.#at);
  }
}

function compressionError(what: string): ConnectionError {
  return new ConnectionError('COMPRESSION_ERROR', `HPACK: ${what}`);
}
