/**
 * Arrays in PostgreSQL's binary format. The driver would send each value as escaped text, which was
 * most of the cost of a batch.
 */

interface Kind {
  /** The type of an element. */
  readonly oid: number;
  readonly bytes: 2 | 4 | 8;
}

const textOid = 25;
const smallint: Kind = { oid: 21, bytes: 2 };
const integer: Kind = { oid: 23, bytes: 4 };
const bigint: Kind = { oid: 20, bytes: 8 };
const headBytes = 20;
const lengthBytes = 4;
const nullLength = -1;
const twoTo32 = 2 ** 32;

export function textArray(list: readonly (string | null)[]): Buffer {
  let bytes = headBytes + list.length * lengthBytes;
  for (const text of list) if (text !== null) bytes += Buffer.byteLength(text);
  const buffer = Buffer.allocUnsafe(bytes);
  let hasNull = false;
  let at = headBytes;
  for (const text of list) {
    if (text === null) {
      hasNull = true;
      at = buffer.writeInt32BE(nullLength, at);
      continue;
    }
    const length = buffer.write(text, at + lengthBytes);
    at = buffer.writeInt32BE(length, at) + length;
  }
  writeHead(buffer, textOid, list.length, hasNull);
  return buffer;
}

export const smallintArray = (list: readonly (number | null)[]) => numberArray(list, smallint);
export const integerArray = (list: readonly (number | null)[]) => numberArray(list, integer);
/** Safe integers only. */
export const bigintArray = (list: readonly (number | null)[]) => numberArray(list, bigint);

function numberArray(list: readonly (number | null)[], { oid, bytes }: Kind): Buffer {
  const buffer = Buffer.allocUnsafe(headBytes + list.length * (lengthBytes + bytes));
  let hasNull = false;
  let at = headBytes;
  for (const value of list) {
    if (value === null) {
      hasNull = true;
      at = buffer.writeInt32BE(nullLength, at);
      continue;
    }
    at = buffer.writeInt32BE(bytes, at);
    if (bytes === 2) at = buffer.writeInt16BE(value, at);
    else if (bytes === 4) at = buffer.writeInt32BE(value, at);
    else at = writeBigint(buffer, value, at);
  }
  writeHead(buffer, oid, list.length, hasNull);
  return buffer.subarray(0, at);
}

function writeBigint(buffer: Buffer, value: number, at: number): number {
  if (!Number.isSafeInteger(value)) throw new RangeError(`${value} is no whole number`);
  const high = Math.floor(value / twoTo32);
  buffer.writeInt32BE(high, at);
  return buffer.writeUInt32BE(value - high * twoTo32, at + lengthBytes);
}

/** One dimension with lower bound 1. */
function writeHead(buffer: Buffer, oid: number, count: number, hasNull: boolean): void {
  buffer.writeInt32BE(1, 0);
  buffer.writeInt32BE(hasNull ? 1 : 0, 4);
  buffer.writeInt32BE(oid, 8);
  buffer.writeInt32BE(count, 12);
  buffer.writeInt32BE(1, 16);
}
