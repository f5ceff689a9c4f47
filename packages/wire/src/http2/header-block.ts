import { staticIndexOf } from './header-tables.js';

/** Tells the peer that we keep nothing in its table, as we never do. */
export const emptyTable = Buffer.of(0x20);

/**
 * A header block in which every field stands for itself: it means the same on every connection,
 * and what it says is kept by no table.
 */
export function headerBlock(fields: Readonly<Record<string, string>>): Buffer {
  return Buffer.concat(Object.entries(fields).flatMap(([name, value]) => encoded(name, value)));
}

function encoded(name: string, value: string): Buffer[] {
  const whole = staticIndexOf(name, value);
  if (whole > 0) return [number(0x80, 0x7f, whole)];
  const index = staticIndexOf(name);
  const named = index > 0 ? [number(0, 0x0f, index)] : [number(0, 0x0f, 0), ...string(name)];
  return [...named, ...string(value)];
}

function string(text: string): Buffer[] {
  const bytes = Buffer.from(text, 'latin1');
  return [number(0, 0x7f, bytes.length), bytes];
}

/** `first` are the bits above those of `mask`, in which the number begins. */
function number(first: number, mask: number, value: number): Buffer {
  if (value < mask) return Buffer.of(first | value);
  const bytes = [first | mask];
  let rest = value - mask;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  bytes.push(rest);
  return Buffer.from(bytes);
}
