const [varint, fixed64, delimited] = [0, 1, 2];
const more = 0x80;
// Deeper nesting and longer varints are left to the library.
const maxLevels = 16;
const maxVarintBytes = 4;

/** A filter in its JSON form; unset fields are left out. */
interface PlainFilter {
  field?: string;
  op?: string;
  value?: unknown;
  and?: PlainFilter[];
  or?: PlainFilter[];
  not?: PlainFilter;
}

/** Thrown when the library must decode the filter; it reports what is wrong, if anything. */
const notPlain = Symbol('not plain');

/** Decodes a Filter; undefined when the library must decode it. */
export function readFilter(length: number, bytes: Buffer, start: number): object | undefined {
  try {
    return filterAt(new Reader(bytes, start, start + length), 0);
  } catch (thrown) {
    if (thrown === notPlain) return undefined;
    throw thrown;
  }
}

class Reader {
  constructor(
    private readonly bytes: Buffer,
    private at: number,
    private readonly end: number,
  ) {}

  get isAtEnd(): boolean {
    return this.at === this.end;
  }

  /** Reads a short varint: a tag, a length or a small number. */
  number(): number {
    let value = 0;
    for (let shift = 0; shift < 7 * maxVarintBytes; shift += 7) {
      const byte = this.#byte();
      value |= (byte & 0x7f) << shift;
      if (byte < more) return value;
    }
    throw notPlain;
  }

  double(): number {
    const { at } = this;
    this.#skip(8);
    return this.bytes.readDoubleLE(at);
  }

  /** ASCII only: other text would have to be validated as UTF-8. */
  text(): string {
    const length = this.number();
    const { at: start } = this;
    this.#skip(length);
    for (let at = start; at < this.at; at++) if (this.bytes[at]! >= more) throw notPlain;
    return this.bytes.toString('latin1', start, this.at);
  }

  part(): Reader {
    const length = this.number();
    const { at: start } = this;
    this.#skip(length);
    return new Reader(this.bytes, start, this.at);
  }

  #byte(): number {
    if (this.isAtEnd) throw notPlain;
    return this.bytes[this.at++]!;
  }

  #skip(count: number): void {
    if (this.at + count > this.end) throw notPlain;
    this.at += count;
  }
}

function filterAt(from: Reader, level: number): PlainFilter {
  if (level > maxLevels) throw notPlain;
  let field = '';
  let op = '';
  let value: unknown;
  let not: PlainFilter | undefined;
  const and: PlainFilter[] = [];
  const or: PlainFilter[] = [];
  while (!from.isAtEnd) {
    const tag = from.number();
    if (tag === tagOf(1, delimited)) field = from.text();
    else if (tag === tagOf(2, delimited)) op = from.text();
    else if (tag === tagOf(3, delimited)) value = once(value, valueAt(from.part(), level + 1));
    else if (tag === tagOf(4, delimited)) and.push(filterAt(from.part(), level + 1));
    else if (tag === tagOf(5, delimited)) or.push(filterAt(from.part(), level + 1));
    else if (tag === tagOf(6, delimited)) not = once(not, filterAt(from.part(), level + 1));
    else throw notPlain;
  }
  const filter: PlainFilter = {};
  if (field !== '') filter.field = field;
  if (op !== '') filter.op = op;
  if (value !== undefined) filter.value = value;
  if (and.length > 0) filter.and = and;
  if (or.length > 0) filter.or = or;
  if (not) filter.not = not;
  return filter;
}

/** Any JSON value except an object; an unset value is null. */
function valueAt(from: Reader, level: number): unknown {
  if (from.isAtEnd) return null;
  const value = kindAt(from, level);
  if (!from.isAtEnd) throw notPlain;
  return value;
}

function kindAt(from: Reader, level: number): unknown {
  switch (from.number()) {
    case tagOf(1, varint):
      from.number();
      return null;
    case tagOf(2, fixed64):
      return from.double();
    case tagOf(3, delimited):
      return from.text();
    case tagOf(4, varint):
      return from.number() !== 0;
    case tagOf(6, delimited):
      return listAt(from.part(), level + 1);
    default:
      throw notPlain;
  }
}

function listAt(from: Reader, level: number): unknown[] {
  if (level > maxLevels) throw notPlain;
  const list: unknown[] = [];
  while (!from.isAtEnd) {
    if (from.number() !== tagOf(1, delimited)) throw notPlain;
    list.push(valueAt(from.part(), level + 1));
  }
  return list;
}

/** Repeated occurrences of a message field would have to be merged. */
function once<Part>(before: Part | undefined, part: Part): Part {
  if (before !== undefined) throw notPlain;
  return part;
}

function tagOf(number: number, wire: number): number {
  return number * 8 + wire;
}
