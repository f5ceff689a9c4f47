import type { TableRow } from '../../storage/file/tables.js';

/** A raw row in a frame: `length of the key u32 | length of the value u32 | both`. */
export function encodeRow({ key, value }: TableRow): Buffer {
  const bytes = Buffer.allocUnsafe(8 + key.length + value.length);
  bytes.writeUInt32BE(key.length, 0);
  bytes.writeUInt32BE(value.length, 4);
  bytes.set(key, 8);
  bytes.set(value, 8 + key.length);
  return bytes;
}

export function decodeRows(bytes: Buffer): TableRow[] {
  const rows: TableRow[] = [];
  for (let at = 0; at < bytes.length;) {
    const keyEnd = at + 8 + bytes.readUInt32BE(at);
    const end = keyEnd + bytes.readUInt32BE(at + 4);
    if (end > bytes.length) throw new RangeError('a row is cut off');
    rows.push({ key: bytes.subarray(at + 8, keyEnd), value: bytes.subarray(keyEnd, end) });
    at = end;
  }
  return rows;
}
