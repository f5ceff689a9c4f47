import type { Json } from '../value/documents.js';

/** The answer when the bytes hold something this reader leaves to the real decoder. */
export const undecided = Symbol('undecided');

const failed = -1;
const absent = -2;

/**
 * Reads one top-level field of an encoded document without decoding the others: most filters look
 * at one or two fields of a record that they then pass over. It knows just the forms that a JSON
 * document of a known shape takes (see codec.ts) and says `undecided` to everything else.
 */
export class FieldReader {
  constructor(
    /** The field names of each shape, by number. */
    private readonly shapes: () => readonly (readonly string[] | undefined)[],
    private readonly decode: (bytes: Uint8Array, start: number, end: number) => Json,
  ) {}

  /** The field's value; undefined when the document has no such field. */
  read(
    bytes: Uint8Array,
    start: number,
    end: number,
    name: string,
  ): Json | undefined | typeof undecided {
    const from = this.#find(bytes, start, end, name);
    if (from === failed) return undecided;
    return from === absent ? undefined : this.#value(bytes, from);
  }

  /** Whether the field is this text, of which the bytes are given: no text is made of it. */
  isText(
    bytes: Uint8Array,
    start: number,
    end: number,
    name: string,
    text: Uint8Array,
  ): boolean | typeof undecided {
    const from = this.#find(bytes, start, end, name);
    if (from === failed) return undecided;
    if (from === absent) return false;
    const at = from + textHead(bytes, from, text.length);
    if (at === from || at + text.length > end) return false;
    for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text[i]) return false;
    return true;
  }

  /** Where the field is. */
  #find(bytes: Uint8Array, start: number, end: number, name: string): number {
    const names = this.#shapeAt(bytes, start);
    if (!names) return failed;
    const at = names.indexOf(name);
    if (at < 0) return absent;
    const first = start + shapeLength(bytes[start]!);
    const from = at === 0 ? first : this.#skip(bytes, first, at);
    return from >= end ? failed : from;
  }

  #value(bytes: Uint8Array, at: number): Json | typeof undecided {
    const token = bytes[at]!;
    if (token < 0x40) return token;
    if (token >= 0xe0) return token - 0x100;
    if (token >= 0xa0 && token < 0xc0) return text(bytes, at + 1, token - 0xa0);
    switch (token) {
      case 0xc0:
        return null;
      case 0xc2:
        return false;
      case 0xc3:
        return true;
      case 0xcc:
        return bytes[at + 1]!;
      case 0xcd:
        return uint16(bytes, at + 1);
      case 0xce:
        return uint32(bytes, at + 1);
      case 0xd9:
        return text(bytes, at + 2, bytes[at + 1]!);
      case 0xda:
        return text(bytes, at + 3, uint16(bytes, at + 1));
      default: {
        const end = this.#skip(bytes, at, 1);
        return end === failed ? undecided : this.decode(bytes, at, end);
      }
    }
  }

  /** The position after `count` values. */
  #skip(bytes: Uint8Array, at: number, count: number): number {
    let left = count;
    while (left > 0) {
      left--;
      const token = bytes[at]!;
      if (token < 0x40 || token >= 0xe0) at += 1;
      else if (token < 0x80) {
        const names = this.#shapeAt(bytes, at);
        if (!names) return failed;
        left += names.length;
        at += shapeLength(token);
      } else if (token < 0x90) {
        left += 2 * (token - 0x80);
        at += 1;
      } else if (token < 0xa0) {
        left += token - 0x90;
        at += 1;
      } else if (token < 0xc0) at += 1 + token - 0xa0;
      else {
        const length = lengths[token - 0xc0]!;
        if (length > 0) at += length;
        else if (token === 0xd9) at += 2 + bytes[at + 1]!;
        else if (token === 0xda) at += 3 + uint16(bytes, at + 1);
        else if (token === 0xdb) at += 5 + uint32(bytes, at + 1);
        else if (token === 0xdc || token === 0xde) {
          left += uint16(bytes, at + 1) * (token === 0xde ? 2 : 1);
          at += 3;
        } else if (token === 0xdd || token === 0xdf) {
          left += uint32(bytes, at + 1) * (token === 0xdf ? 2 : 1);
          at += 5;
        } else return failed;
      }
    }
    return at;
  }

  #shapeAt(bytes: Uint8Array, at: number): readonly string[] | undefined {
    const token = bytes[at]!;
    if (token < 0x40 || token >= 0x80) return undefined;
    const number = token < 0x60 ? token - 0x40 : token - 0x40 + bytes[at + 1]! * 32;
    return this.shapes()[number];
  }
}

// The whole length of the values that are always as long, by token from 0xc0; 0: not one of them.
const lengths = new Uint8Array(32);
for (const token of [0xc0, 0xc2, 0xc3]) lengths[token - 0xc0] = 1;
for (const token of [0xcc, 0xd0]) lengths[token - 0xc0] = 2;
for (const token of [0xcd, 0xd1]) lengths[token - 0xc0] = 3;
for (const token of [0xca, 0xce, 0xd2]) lengths[token - 0xc0] = 5;
for (const token of [0xcb, 0xcf, 0xd3]) lengths[token - 0xc0] = 9;

/** Shapes from the 33rd on take two bytes. */
function shapeLength(token: number): number {
  return token < 0x60 ? 1 : 2;
}

/** How long the head of a text of this length is; 0: it is no such text. */
function textHead(bytes: Uint8Array, at: number, length: number): number {
  const token = bytes[at]!;
  if (token >= 0xa0 && token < 0xc0) return token - 0xa0 === length ? 1 : 0;
  if (token === 0xd9) return bytes[at + 1] === length ? 2 : 0;
  if (token === 0xda) return uint16(bytes, at + 1) === length ? 3 : 0;
  return token === 0xdb && uint32(bytes, at + 1) === length ? 5 : 0;
}

function uint16(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!;
}

function uint32(bytes: Uint8Array, at: number): number {
  return uint16(bytes, at) * 0x10000 + uint16(bytes, at + 2);
}

const maxPlainLength = 20;

/** Short ASCII, which most values are, is cheaper to gather here than to ask the system for. */
function text(bytes: Uint8Array, start: number, length: number): string {
  if (length <= maxPlainLength) {
    let gathered = '';
    let at = start;
    for (; at < start + length; at++) {
      const unit = bytes[at]!;
      if (unit >= 0x80) break;
      gathered += String.fromCharCode(unit);
    }
    if (at === start + length) return gathered;
  }
  return (bytes as Buffer).toString('utf8', start, start + length);
}
