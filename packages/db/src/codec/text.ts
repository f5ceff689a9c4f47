import { isUtf8 } from 'node:buffer';

const more = 0x80;
const firstOfBom = 0xef;

/** Undefined unless it is valid UTF-8. Text that may begin with a BOM is left to the library. */
export function textAt(bytes: Buffer, start: number, end: number): string | undefined {
  for (let at = start; at < end; at++) {
    if (bytes[at]! >= more) return utf8At(bytes, start, end);
  }
  return bytes.toString('latin1', start, end);
}

function utf8At(bytes: Buffer, start: number, end: number): string | undefined {
  if (bytes[start] === firstOfBom || !isUtf8(bytes.subarray(start, end))) return undefined;
  return bytes.toString('utf8', start, end);
}
