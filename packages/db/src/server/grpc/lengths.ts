import type { GrowingBytes } from '@millrace/engine/value/growing-bytes';

const [more, group] = [0x80, 128];
const largestInt = 2 ** 31;

/** Bytes reserved for a length that is not known yet; most lengths need two. */
export const lengthBytes = 2;
const maxTwoByteLength = 2 ** 14;

/** Writes a varint of at most 2^53; the caller has reserved space. */
export function putNumber(to: { readonly bytes: Buffer; at: number }, value: number): void {
  const { bytes } = to;
  let { at } = to;
  let rest = value;
  for (; rest >= largestInt; rest = Math.floor(rest / group)) bytes[at++] = (rest % group) | more;
  for (; rest >= group; rest >>>= 7) bytes[at++] = rest | more;
  bytes[at++] = rest;
  to.at = at;
}

/** Writes the length of the bytes since `start` into the reserved bytes before it. */
export function closeLength(to: GrowingBytes, start: number): void {
  const length = to.at - start;
  if (length < group || length >= maxTwoByteLength) return moveAndClose(to, start);
  to.bytes[start - 2] = length | more;
  to.bytes[start - 1] = length >>> 7;
}

/** Moves the content when its length needs fewer or more bytes than reserved. */
function moveAndClose(to: GrowingBytes, start: number): void {
  const { at: end } = to;
  to.reserve(2);
  to.at = start - lengthBytes;
  const count = end - start < group ? 1 : end - start < 2 ** 21 ? 3 : 4;
  to.bytes.copyWithin(to.at + count, start, end);
  putNumber(to, end - start);
  to.at += end - start;
}
