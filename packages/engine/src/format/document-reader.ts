import type { Json, JsonObject } from '../value/documents.js';

type Shapes = readonly (readonly string[] | undefined)[];

/** Longer documents are left to msgpackr: a text that is kept would hold on to all of them. */
const maxBytes = 4_096;
const noBytes = Buffer.alloc(0);

/**
 * Decodes short documents. The texts of a document are slices of one string made of all its bytes,
 * which takes half the time of making each of them. It knows just the forms that a JSON document
 * of known shapes takes (see codec.ts).
 */
export class DocumentReader {
  #bytes: Buffer = noBytes;
  #start = 0;
  #at = 0;
  /** The document as one character per byte. */
  #characters = '';
  #shapes: Shapes = [];

  constructor(
    /** The field names of each shape, by number. */
    private readonly shapes: () => Shapes,
  ) {}

  /** The value; undefined when it is one for msgpackr to decode. */
  read(bytes: Uint8Array, start: number, end: number): Json | undefined {
    if (end - start > maxBytes || !Buffer.isBuffer(bytes)) return undefined;
    this.#bytes = bytes;
    this.#start = this.#at = start;
    this.#shapes = this.shapes();
    this.#characters = bytes.toString('latin1', start, end);
    const value = this.#value();
    const isKnown = this.#bytes === bytes && this.#at === end;
    this.#bytes = noBytes;
    return isKnown ? value : undefined;
  }

  #value(): Json {
    const token = this.#bytes[this.#at++];
    if (token === undefined) return this.#giveUp();
    if (token < 0x40) return token;
    if (token < 0x80) return this.#record(token);
    if (token >= 0xe0) return token - 0x100;
    if (token >= 0xa0 && token < 0xc0) return this.#text(token - 0xa0);
    if (token >= 0x90 && token < 0xa0) return this.#array(token - 0x90);
    switch (token) {
      case 0xc0:
        return null;
      case 0xc2:
        return false;
      case 0xc3:
        return true;
      case 0xcb:
        return this.#double();
      case 0xcc:
        return this.#uint(1);
      case 0xcd:
        return this.#uint(2);
      case 0xce:
        return this.#uint(4);
      case 0xd0:
        return (this.#uint(1) << 24) >> 24;
      case 0xd1:
        return (this.#uint(2) << 16) >> 16;
      case 0xd2:
        return this.#uint(4) | 0;
      case 0xd9:
        return this.#text(this.#uint(1));
      case 0xda:
        return this.#text(this.#uint(2));
      case 0xdc:
        return this.#array(this.#uint(2));
      default:
        return this.#giveUp();
    }
  }

  #record(token: number): Json {
    const number = token < 0x60 ? token - 0x40 : token - 0x40 + this.#uint(1) * 32;
    const names = this.#shapes[number];
    if (!names) return this.#giveUp();
    const record: JsonObject = {};
    for (let i = 0; i < names.length; i++) record[names[i]!] = this.#value();
    return record;
  }

  #array(length: number): Json {
    if (length > this.#bytes.length) return this.#giveUp();
    const array: Json[] = [];
    for (let i = 0; i < length; i++) array.push(this.#value());
    return array;
  }

  #text(length: number): string {
    const bytes = this.#bytes;
    const from = this.#at;
    const end = (this.#at += length);
    for (let i = from; i < end; i++) {
      if (bytes[i]! >= 0x80) return bytes.toString('utf8', from, end);
    }
    return this.#characters.substring(from - this.#start, end - this.#start);
  }

  #uint(length: number): number {
    let value = 0;
    for (const end = this.#at + length; this.#at < end; this.#at++) {
      value = value * 256 + (this.#bytes[this.#at] ?? 0);
    }
    return value;
  }

  #double(): Json {
    const at = this.#at;
    if (at + 8 > this.#bytes.length) return this.#giveUp();
    this.#at += 8;
    return this.#bytes.readDoubleBE(at);
  }

  /** Everything that follows meets the end at once. */
  #giveUp(): Json {
    this.#bytes = noBytes;
    return null;
  }
}
