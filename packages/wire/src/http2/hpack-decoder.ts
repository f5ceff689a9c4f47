import { Field } from './field.js';
import { HeaderTable } from './header-tables.js';
import { huffmanDecoded } from './huffman.js';
import { ConnectionError } from './protocol.js';

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
