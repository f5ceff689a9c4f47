import { staticIndexOf } from './header-tables.js';

/** Dynamic table size update to 0: our encoder never uses the dynamic table. */
export const emptyTable = Buffer.of(0x20);

/** Header fields with their encoded HPACK block. */
export class HeaderList {
  #block: Buffer | undefined;

  constructor(readonly fields: Readonly<Record<string, string>>) {}

  /** A header block without dynamic table entries, valid on every connection. */
  get block(): Buffer {
    return (this.#block ??= headerBlock(this.fields));
  }
}

/**
 * A header block without dynamic table references: it is valid on every connection, and no field
 * is added to the peer's table.
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

/** An HPACK integer. `first` holds the bits above the prefix `mask`. */
function number(first: number, mask: number, value: number): Buffer {
  if (value < mask) return Buffer.of(first | value);
  const bytes = [first | mask];
  let rest = value - mask;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  bytes.push(rest);
  return Buffer.from(bytes);
}
