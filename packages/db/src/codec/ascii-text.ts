/** Undefined unless it is ASCII: other text would have to be validated as UTF-8. */
export function asciiText(bytes: Buffer, start: number, end: number): string | undefined {
  for (let at = start; at < end; at++) if (bytes[at]! >= 0x80) return undefined;
  return bytes.toString('latin1', start, end);
}
