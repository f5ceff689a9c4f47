/**
 * The keys of the tables in the file. Their bytes sort in the order of the values:
 *
 *   records   collection u32 | id 16
 *   keys      collection u32 | key utf-8                   -> id 16
 *   index     index u32 | values (see encoding.ts) | id 16; of a search index see search-pages.ts
 *   unique    index u32 | values                           -> id 16
 *   expiry    time u48 | kind u8 | id of what expires
 *   requests  request id utf-8
 *   meta      name
 *   rows      chosen by the caller (see core/rows.ts)
 */
export const idLength = 16;
export const prefixLength = 4;

const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const digitOf = new Int8Array(128).fill(-1);
for (let i = 0; i < 32; i++) digitOf[alphabet.charCodeAt(i)] = i;
for (let i = 10; i < 32; i++) digitOf[alphabet.charCodeAt(i) | 32] = i;

/** Writes the 16 bytes of a ULID's 26 characters. */
export function writeId(id: string, target: Uint8Array, offset: number): void {
  // 26 characters are 130 bits; the first two bits are always zero. The first two characters are
  // one byte; the rest is three groups of eight characters, five bytes each.
  target[offset] = (digit(id, 0) << 5) | digit(id, 1);
  for (let i = 2, at = offset + 1; i < 26; i += 8, at += 5) {
    const high = (digit(id, i) << 15) | (digit(id, i + 1) << 10) | (digit(id, i + 2) << 5);
    const low = (digit(id, i + 4) << 15) | (digit(id, i + 5) << 10) | (digit(id, i + 6) << 5);
    const upper = high | digit(id, i + 3);
    const lower = low | digit(id, i + 7);
    target[at] = upper >>> 12;
    target[at + 1] = upper >>> 4;
    target[at + 2] = (upper << 4) | (lower >>> 16);
    target[at + 3] = lower >>> 8;
    target[at + 4] = lower;
  }
}

function digit(id: string, at: number): number {
  return digitOf[id.charCodeAt(at)]!;
}

// A buffer: concatenating 26 characters would leave a chain of strings behind for each id.
const idText = Buffer.alloc(26);
const alphabetBytes = Buffer.from(alphabet, 'latin1');

/** The 26 characters of 16 bytes. */
export function readId(source: Uint8Array, offset: number): string {
  copyIdText(source, offset, idText, 0);
  return idText.toString('latin1');
}

/** Writes the 26 characters of 16 bytes as ASCII. */
export function copyIdText(
  source: Uint8Array,
  offset: number,
  target: Uint8Array,
  start: number,
): void {
  // As in `writeId`: one byte is two characters, then five bytes are eight.
  const first = source[offset]!;
  target[start] = alphabetBytes[first >>> 5]!;
  target[start + 1] = alphabetBytes[first & 31]!;
  for (let from = offset + 1, at = start + 2; at < start + 26; from += 5, at += 8) {
    const middle = source[from + 2]!;
    writeFour((source[from]! << 12) | (source[from + 1]! << 4) | (middle >>> 4), target, at);
    const lower = ((middle & 15) << 16) | (source[from + 3]! << 8) | source[from + 4]!;
    writeFour(lower, target, at + 4);
  }
}

/** Writes 20 bits as four characters. */
function writeFour(bits: number, target: Uint8Array, at: number): void {
  target[at] = alphabetBytes[bits >>> 15]!;
  target[at + 1] = alphabetBytes[(bits >>> 10) & 31]!;
  target[at + 2] = alphabetBytes[(bits >>> 5) & 31]!;
  target[at + 3] = alphabetBytes[bits & 31]!;
}

export function idBytes(id: string): Buffer {
  const bytes = Buffer.allocUnsafe(idLength);
  writeId(id, bytes, 0);
  return bytes;
}

export function recordKey(collection: number, id: string): Buffer {
  const key = Buffer.allocUnsafe(prefixLength + idLength);
  key.writeUInt32BE(collection, 0);
  writeId(id, key, prefixLength);
  return key;
}

/** The four-byte prefix of all keys of a collection or an index. */
export function prefixKey(owner: number): Buffer {
  const key = Buffer.allocUnsafe(prefixLength);
  key.writeUInt32BE(owner, 0);
  return key;
}

/** `prefix | bytes`, for tables whose keys begin with a collection or an index. */
export function prefixed(owner: number, bytes: Uint8Array): Buffer {
  const key = Buffer.allocUnsafe(prefixLength + bytes.length);
  key.writeUInt32BE(owner, 0);
  key.set(bytes, prefixLength);
  return key;
}

/**
 * `index | values | id`: the key of an index entry, built in one buffer because writes make many.
 */
export function entryKey(index: number, values: Uint8Array, id: string): Buffer {
  const key = Buffer.allocUnsafe(prefixLength + values.length + idLength);
  key.writeUInt32BE(index, 0);
  key.set(values, prefixLength);
  writeId(id, key, prefixLength + values.length);
  return key;
}

export function readUint48(source: Uint8Array, offset: number): number {
  const high = source[offset]! * 0x100 + source[offset + 1]!;
  const low =
    source[offset + 2]! * 0x1000000 +
    ((source[offset + 3]! << 16) | (source[offset + 4]! << 8) | source[offset + 5]!);
  return high * 0x100000000 + low;
}

/** The kinds of rows in the table `expiry`. */
export const expiryKinds = { record: 1, request: 2 } as const;

/** The time and the kind, before the id of what expires. */
export const expiryHeadLength = 7;

export function expiryKey(time: number, kind: number, what: Uint8Array): Buffer {
  const key = Buffer.allocUnsafe(expiryHeadLength + what.length);
  key.writeUIntBE(time, 0, 6);
  key[6] = kind;
  key.set(what, expiryHeadLength);
  return key;
}
