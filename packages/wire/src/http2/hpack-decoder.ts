import { Field } from './field.js';
import { HeaderTable } from './header-tables.js';
import { huffmanDecoded } from './huffman.js';
import { ConnectionError } from './protocol.js';

/** Takes the fields of a header block in their order. */
export interface FieldSink {
  take(field: Field): void;
}

// No length or index of ours comes near it.
const largestNumber = 2 ** 24;

/** Reads header blocks (RFC 7541) of one connection, all of them and in their order. */
export class HpackDecoder {
  readonly #table = new HeaderTable();
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;
  #end = 0;

  /** Rises when the same block may mean something else than before. */
  get changes(): number {
    return this.#table.changes;
  }

  /** Throws a ConnectionError, after which no other block can be read. */
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
        if (!mayResize) throw broken('the table is resized in the middle of a block');
        if (!this.#table.resize(this.#number(0x1f))) throw broken('the table becomes too large');
        continue;
      }
      mayResize = false;
    }
  }

  #indexed(index: number): Field {
    const field = index === 0 ? undefined : this.#table.at(index);
    if (!field) throw broken(`there is no field ${index}`);
    return field;
  }

  #literal(mask: number): Field {
    const index = this.#number(mask);
    const name = index === 0 ? this.#string() : this.#indexed(index).name;
    return new Field(name, this.#string());
  }

  /** A number that begins in the bits of `mask`. */
  #number(mask: number): number {
    const bytes = this.#bytes;
    let value = bytes[this.#at++]! & mask;
    if (value < mask) return value;
    for (let scale = 1; ; scale *= 128) {
      if (this.#at >= this.#end) throw broken('a number has no end');
      const byte = bytes[this.#at++]!;
      value += (byte & 0x7f) * scale;
      if (value > largestNumber || scale > largestNumber) throw broken('a number is too large');
      if (byte < 0x80) return value;
    }
  }

  #string(): string {
    if (this.#at >= this.#end) throw broken('a field has no end');
    const isHuffman = this.#bytes[this.#at]! >= 0x80;
    const length = this.#number(0x7f);
    const start = this.#at;
    if (length > this.#end - start) throw broken('a string has no end');
    this.#at = start + length;
    return isHuffman
      ? huffmanDecoded(this.#bytes, start, this.#at)
      : this.#bytes.toString('latin1', start, this.#at);
  }
}

function broken(what: string): ConnectionError {
  return new ConnectionError('COMPRESSION_ERROR', `headers: ${what}`);
}
