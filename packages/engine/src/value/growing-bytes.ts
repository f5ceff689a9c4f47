const [minus, zero] = [0x2d, 0x30];

/** A buffer that is written sequentially and grows on demand. */
export class GrowingBytes {
  bytes: Buffer;
  /** Of the same bytes: writing four at a time is as cheap as one. */
  view: DataView;
  /** Offset of the next byte. Reserve room before moving it. */
  at = 0;

  constructor(firstBytes: number) {
    this.bytes = Buffer.allocUnsafeSlow(firstBytes);
    this.view = viewOf(this.bytes);
  }

  /** Reserves room for `count` bytes. */
  reserve(count: number): void {
    if (this.at + count > this.bytes.length) this.#grow(count);
  }

  /** Appends bytes. */
  put(source: Uint8Array): void {
    this.reserve(source.length);
    this.bytes.set(source, this.at);
    this.at += source.length;
  }

  /** Appends an integer of at most 2^53 in decimal. Reserve 17 bytes first. */
  digits(value: number): void {
    const out = this.bytes;
    let rest = value;
    if (rest < 0) {
      out[this.at++] = minus;
      rest = -rest;
    }
    let digits = 1;
    for (let limit = 10; rest >= limit; limit *= 10) digits++;
    const end = this.at + digits;
    for (let at = end - 1; at >= this.at; at--) {
      const tenth = Math.floor(rest / 10);
      out[at] = zero + rest - tenth * 10;
      rest = tenth;
    }
    this.at = end;
  }

  #grow(count: number): void {
    const larger = Buffer.allocUnsafeSlow(2 * (this.at + count));
    this.bytes.copy(larger, 0, 0, this.at);
    this.bytes = larger;
    this.view = viewOf(larger);
  }
}

function viewOf({ buffer, byteOffset, byteLength }: Buffer): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}
