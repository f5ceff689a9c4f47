const firstBytes = 64 * 1024;
const maxRetainedBytes = 1024 * 1024;
const largestNumber = BigInt(Number.MAX_SAFE_INTEGER);
const largestInt = 2 ** 31;
const [low7, more, group] = [0x7f, 0x80, 128];

/**
 * Writes a protobuf message from its end to its beginning, so that the length of each nested part
 * is known when it is written: nothing is measured first or moved afterwards.
 */
export class BackwardWriter {
  #bytes = Buffer.allocUnsafeSlow(firstBytes);
  #at = firstBytes;

  /** Number of bytes written. */
  get length(): number {
    return this.#bytes.length - this.#at;
  }

  /** Returns a copy of the written bytes and resets the writer. */
  take(): Buffer {
    const written = Buffer.from(this.#bytes.subarray(this.#at));
    if (this.#bytes.length > maxRetainedBytes) this.#bytes = Buffer.allocUnsafeSlow(firstBytes);
    this.#at = this.#bytes.length;
    return written;
  }

  /** Discards the written bytes. */
  clear(): void {
    this.#at = this.#bytes.length;
  }

  /** Writes the 5-byte gRPC message prefix for everything written so far. */
  head(): void {
    const { length } = this;
    this.#reserve(5);
    this.#at -= 5;
    this.#bytes[this.#at] = 0;
    this.#bytes.writeUInt32BE(length, this.#at + 1);
  }

  /** A varint of at most 2^53. */
  number(value: number): void {
    this.#reserve(10);
    if (value < group) this.#bytes[--this.#at] = value;
    else if (value < largestInt) this.#int(value);
    else this.#large(value);
  }

  #int(value: number): void {
    const count = value < 0x4000 ? 2 : value < 0x200000 ? 3 : value < 0x10000000 ? 4 : 5;
    this.#at -= count;
    const last = this.#at + count - 1;
    let rest = value;
    for (let at = this.#at; at < last; at++, rest >>>= 7) this.#bytes[at] = rest | more;
    this.#bytes[last] = rest;
  }

  #large(value: number): void {
    const count = varintBytes(value);
    this.#at -= count;
    let rest = value;
    for (let at = this.#at, last = this.#at + count - 1; at < last; at++) {
      this.#bytes[at] = (rest % group) | more;
      rest = Math.floor(rest / group);
    }
    this.#bytes[this.#at + count - 1] = rest;
  }

  /** A 64-bit varint, signed or unsigned. */
  bigint(value: bigint): void {
    if (value >= 0n && value <= largestNumber) return this.number(Number(value));
    const septets: number[] = [];
    for (let rest = BigInt.asUintN(64, value); rest > 0n; rest >>= 7n) {
      septets.push(Number(rest & BigInt(low7)));
    }
    this.#reserve(septets.length);
    this.#at -= septets.length;
    septets.forEach((septet, i) => {
      this.#bytes[this.#at + i] = i < septets.length - 1 ? septet | more : septet;
    });
  }

  double(value: number): void {
    this.#reserve(8);
    this.#at = this.#bytes.writeDoubleLE(value, this.#at - 8) - 8;
  }

  fixed64(value: bigint): void {
    this.#reserve(8);
    this.#at = this.#bytes.writeBigUInt64LE(value, this.#at - 8) - 8;
  }

  /** Raw bytes without a length. */
  raw(value: Uint8Array): void {
    this.#reserve(value.length);
    this.#at -= value.length;
    this.#bytes.set(value, this.#at);
  }

  /** Length-prefixed bytes. */
  bytes(value: Uint8Array): void {
    this.raw(value);
    this.number(value.length);
  }

  /** Length-prefixed UTF-8. */
  string(value: string): void {
    const length = Buffer.byteLength(value, 'utf8');
    this.#reserve(length);
    this.#at -= length;
    this.#bytes.write(value, this.#at, length, 'utf8');
    this.number(length);
  }

  #reserve(count: number): void {
    if (this.#at >= count) return;
    const { length } = this;
    const larger = Buffer.allocUnsafeSlow(Math.max(2 * this.#bytes.length, 2 * (length + count)));
    this.#bytes.copy(larger, larger.length - length, this.#at);
    this.#bytes = larger;
    this.#at = larger.length - length;
  }
}

function varintBytes(value: number): number {
  let count = 1;
  for (let rest = value; rest >= group; rest = Math.floor(rest / group)) count++;
  return count;
}
