import type { GrowingBytes } from '../../engine/growing-bytes.js';

const [more, group] = [0x80, 128];
const largestInt = 2 ** 31;

/** What is left free for a length before it is known: most parts have so many bytes. */
export const lengthRoom = 2;
const mostInRoom = 2 ** 14;

/** Writes a whole number of at most 2^53, for which there is room. */
export function putNumber(to: { readonly bytes: Buffer; at: number }, value: number): void {
  const { bytes } = to;
  let { at } = to;
  let rest = value;
  for (; rest >= largestInt; rest = Math.floor(rest / group)) bytes[at++] = (rest % group) | more;
  for (; rest >= group; rest >>>= 7) bytes[at++] = rest | more;
  bytes[at++] = rest;
  to.at = at;
}

/** Writes the length of what was written from `start` on into the room before it. */
export function closeLength(to: GrowingBytes, start: number): void {
  const length = to.at - start;
  if (length < group || length >= mostInRoom) return moveAndClose(to, start);
  to.bytes[start - 2] = length | more;
  to.bytes[start - 1] = length >>> 7;
}

/** The length takes less or more than the room that was left for it. */
function moveAndClose(to: GrowingBytes, start: number): void {
  const { at: end } = to;
  to.reserve(2);
  to.at = start - lengthRoom;
  const count = end - start < group ? 1 : end - start < 2 ** 21 ? 3 : 4;
  to.bytes.copyWithin(to.at + count, start, end);
  putNumber(to, end - start);
  to.at += end - start;
}
