const failed = -1;
const firstBytes = 64 * 1024;
const mostKeptBytes = 1024 * 1024;
const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];
const [minus, zero] = [0x2d, 0x30];
// The longest number of JavaScript, as -1.2345678901234567e-300, and a comma.
const numberRoom = 32;
// A control character takes six bytes, and text has two quotes and a comma.
const escapeRoom = 6;

type Names = readonly string[];

/** The text before each value of a shape: `{"name":` for the first, `,"next":` for the others. */
interface Labels {
  readonly names: Names;
  readonly texts: readonly Uint8Array[];
}

/**
 * Writes an encoded document as JSON text without making an object of it: the bytes that
 * `JSON.stringify` of the decoded document has. It knows just the forms that a JSON document takes
 * (see codec.ts) and leaves everything else to the real decoder.
 */
export class JsonWriter {
  #out = Buffer.allocUnsafeSlow(firstBytes);
  #at = 0;
  readonly #labels: (Labels | undefined)[] = [];

  /** `shapes`: the field names of each shape, by number. */
  constructor(private readonly shapes: () => readonly (Names | undefined)[]) {}

  /** The text, valid until the next call; undefined when the bytes hold something else. */
  write(bytes: Uint8Array, start: number, end: number): Buffer | undefined {
    if (this.#out.length > mostKeptBytes) this.#out = Buffer.allocUnsafeSlow(firstBytes);
    this.#at = 0;
    return this.#value(bytes, start) === end ? this.#out.subarray(0, this.#at) : undefined;
  }

  /** Writes the value at `at` and returns the position behind it. */
  #value(bytes: Uint8Array, at: number): number {
    const token = bytes[at]!;
    if (token < 0x40) return this.#whole(token, at + 1);
    if (token < 0x80) return this.#shape(bytes, at, token);
    if (token < 0x90) return this.#map(bytes, at + 1, token - 0x80);
    if (token < 0xa0) return this.#list(bytes, at + 1, token - 0x90);
    if (token < 0xc0) return this.#text(bytes, at + 1, token - 0xa0);
    if (token >= 0xe0) return this.#whole(token - 0x100, at + 1);
    switch (token) {
      case 0xc0:
        return this.#word('null', at);
      case 0xc2:
        return this.#word('false', at);
      case 0xc3:
        return this.#word('true', at);
      case 0xca:
        return this.#number(floatAt(bytes, at + 1, 4), at + 5);
      case 0xcb:
        return this.#number(floatAt(bytes, at + 1, 8), at + 9);
      case 0xcc:
        return this.#whole(bytes[at + 1]!, at + 2);
      case 0xcd:
        return this.#whole(uint16(bytes, at + 1), at + 3);
      case 0xce:
        return this.#whole(uint32(bytes, at + 1), at + 5);
      case 0xd0:
        return this.#whole((bytes[at + 1]! << 24) >> 24, at + 2);
      case 0xd1:
        return this.#whole((uint16(bytes, at + 1) << 16) >> 16, at + 3);
      case 0xd2:
        return this.#whole(uint32(bytes, at + 1) | 0, at + 5);
      case 0xd9:
        return this.#text(bytes, at + 2, bytes[at + 1]!);
      case 0xda:
        return this.#text(bytes, at + 3, uint16(bytes, at + 1));
      case 0xdb:
        return this.#text(bytes, at + 5, uint32(bytes, at + 1));
      case 0xdc:
        return this.#list(bytes, at + 3, uint16(bytes, at + 1));
      case 0xdd:
        return this.#list(bytes, at + 5, uint32(bytes, at + 1));
      case 0xde:
        return this.#map(bytes, at + 3, uint16(bytes, at + 1));
      case 0xdf:
        return this.#map(bytes, at + 5, uint32(bytes, at + 1));
      default:
        return failed;
    }
  }

  #shape(bytes: Uint8Array, start: number, token: number): number {
    // Shapes from the 33rd on take two bytes.
    const isLong = token >= 0x60;
    const number = isLong ? token - 0x40 + bytes[start + 1]! * 32 : token - 0x40;
    const texts = this.#labelsOf(number);
    if (!texts) return failed;
    let at = isLong ? start + 2 : start + 1;
    if (texts.length === 0) return this.#word('{}', at - 1);
    for (let i = 0; i < texts.length; i++) {
      const label = texts[i]!;
      this.#reserve(label.length);
      const out = this.#out;
      let to = this.#at;
      // Names are short: copying them byte by byte beats a call.
      for (let j = 0; j < label.length; j++) out[to++] = label[j]!;
      this.#at = to;
      at = this.#value(bytes, at);
      if (at === failed) return failed;
    }
    this.#byte(closeObject);
    return at;
  }

  #labelsOf(number: number): readonly Uint8Array[] | undefined {
    const names = this.shapes()[number];
    if (!names) return undefined;
    const known = this.#labels[number];
    if (known && known.names === names) return known.texts;
    const texts = names.map((name, i) =>
      Buffer.from(`${i === 0 ? '{' : ','}${JSON.stringify(name)}:`),
    );
    this.#labels[number] = { names, texts };
    return texts;
  }

  #map(bytes: Uint8Array, start: number, count: number): number {
    let at = start;
    this.#byte(openObject);
    for (let i = 0; i < count; i++) {
      if (i > 0) this.#byte(comma);
      if (!isText(bytes[at]!)) return failed;
      at = this.#value(bytes, at);
      this.#byte(colon);
      at = this.#value(bytes, at);
      if (at === failed) return failed;
    }
    this.#byte(closeObject);
    return at;
  }

  #list(bytes: Uint8Array, start: number, count: number): number {
    let at = start;
    this.#byte(openList);
    for (let i = 0; i < count; i++) {
      if (i > 0) this.#byte(comma);
      at = this.#value(bytes, at);
      if (at === failed) return failed;
    }
    this.#byte(closeList);
    return at;
  }

  #text(bytes: Uint8Array, start: number, length: number): number {
    this.#reserve(length * escapeRoom + 2);
    const out = this.#out;
    const end = start + length;
    let to = this.#at;
    out[to++] = quote;
    for (let at = start; at < end; at++) {
      const byte = bytes[at]!;
      if (byte >= 0x20 && byte !== quote && byte !== backslash) out[to++] = byte;
      else to += out.write(escapes[byte]!, to, 'latin1');
    }
    out[to++] = quote;
    this.#at = to;
    return end;
  }

  #whole(value: number, next: number): number {
    this.#reserve(numberRoom);
    let rest = value;
    if (rest < 0) {
      this.#out[this.#at++] = minus;
      rest = -rest;
    }
    let digits = 1;
    for (let limit = 10; rest >= limit; limit *= 10) digits++;
    const end = this.#at + digits;
    for (let at = end - 1; at >= this.#at; at--) {
      const tenth = Math.floor(rest / 10);
      this.#out[at] = zero + rest - tenth * 10;
      rest = tenth;
    }
    this.#at = end;
    return next;
  }

  #number(value: number, next: number): number {
    if (!Number.isFinite(value)) return failed;
    this.#reserve(numberRoom);
    const text = String(value);
    for (let i = 0; i < text.length; i++) this.#out[this.#at++] = text.charCodeAt(i);
    return next;
  }

  /** A word that one byte at `at` stands for. */
  #word(word: string, at: number): number {
    this.#reserve(word.length);
    for (let i = 0; i < word.length; i++) this.#out[this.#at++] = word.charCodeAt(i);
    return at + 1;
  }

  #byte(byte: number): void {
    this.#reserve(1);
    this.#out[this.#at++] = byte;
  }

  #reserve(count: number): void {
    if (this.#at + count <= this.#out.length) return;
    const larger = Buffer.allocUnsafeSlow(2 * (this.#at + count));
    this.#out.copy(larger, 0, 0, this.#at);
    this.#out = larger;
  }
}

/** What JSON writes in place of the characters that it does not write as they are. */
const escapes: string[] = [];
for (const code of [...Array(0x20).keys(), quote, backslash]) {
  escapes[code] = JSON.stringify(String.fromCharCode(code)).slice(1, -1);
}

function isText(token: number): boolean {
  return (token >= 0xa0 && token < 0xc0) || (token >= 0xd9 && token <= 0xdb);
}

function uint16(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!;
}

function uint32(bytes: Uint8Array, at: number): number {
  return uint16(bytes, at) * 0x10000 + uint16(bytes, at + 2);
}

const floatBytes = new Uint8Array(8);
const floatView = new DataView(floatBytes.buffer);

function floatAt(bytes: Uint8Array, at: number, length: 4 | 8): number {
  for (let i = 0; i < length; i++) floatBytes[i] = bytes[at + i]!;
  return length === 4 ? floatView.getFloat32(0) : floatView.getFloat64(0);
}
