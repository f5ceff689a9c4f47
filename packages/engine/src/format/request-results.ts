import { readUint48 } from './keys.js';

/** The result of a request, as the commit carries it to other nodes. */
export interface RequestResult {
  /** Key of its row in `requests`. */
  key: Buffer;
  /** The row, without the record image, which is among the changes of the commit. */
  value: Buffer;
  /** Milliseconds since the epoch. */
  expiresAt: number;
}

const headLength = 6 + 2 + 4;

/** `expires_at u48 | key length u16 | value length u32 | key | value` */
export function encodeResult({ key, value, expiresAt }: RequestResult): Buffer {
  const head = Buffer.allocUnsafe(headLength);
  head.writeUIntBE(expiresAt, 0, 6);
  head.writeUInt16BE(key.length, 6);
  head.writeUInt32BE(value.length, 8);
  return Buffer.concat([head, key, value]);
}

/** The results from `at` to the end of a commit. */
export function decodeResults(bytes: Buffer, at: number): RequestResult[] {
  const results: RequestResult[] = [];
  for (let next = at; next < bytes.length;) {
    const valueAt = next + headLength + bytes.readUInt16BE(next + 6);
    const end = valueAt + bytes.readUInt32BE(next + 8);
    results.push({
      expiresAt: readUint48(bytes, next),
      key: bytes.subarray(next + headLength, valueAt),
      value: bytes.subarray(valueAt, end),
    });
    next = end;
  }
  return results;
}
