import type { Json } from '../value/documents.js';
import { after, EntryEncoder, tags } from '../format/encoding.js';
import { indexForm, type CompiledIndex, type IndexDefinition } from '../format/entries.js';
import { lastSigma, type FieldTest } from '../value/filter.js';
import { equalValues, rankOf, ranks } from '../value/order.js';

/**
 * What the planner needs of an index. The flags hold for the view that is read, or are stricter.
 */
export interface QueryIndex {
  /** Its number in `ReadView.entries`. */
  readonly id: number;
  readonly compiled: CompiledIndex;
  /** `ready`: it contains every record of the view. Other indexes are not used. */
  readonly state: string;
  /** A record has or had several entries, or an array. */
  readonly multi: boolean;
  /** A value is or was too long and was cut. */
  readonly cut: boolean;
}

/** Entries from `start` (included) up to `end` (excluded). */
export interface IndexRange {
  readonly start: Uint8Array;
  readonly end: Uint8Array;
}

export interface IndexRanges {
  /** In order, without overlap. Empty: nothing can match. */
  readonly ranges: readonly IndexRange[];
  /** Number of leading fields bound to given values. */
  readonly bound: number;
  /** Number of those bound to a single value. */
  readonly constant: number;
  /** Those values, encoded. */
  readonly constantValues: Uint8Array;
  /** How the next field is restricted. */
  readonly narrowed?: 'range' | 'element' | 'presence' | undefined;
}

// The maximum length of the list of one `in`.
const maxRanges = 10_000;

/**
 * The ranges of an index that contain all records that pass the tests, which must all hold: leading
 * fields bound to values, then one field restricted to a range. `undefined` when the tests do not
 * restrict the first field.
 */
export function indexRanges(
  index: QueryIndex,
  tests: readonly FieldTest[],
): IndexRanges | undefined {
  const { paths } = index.compiled;
  const encoder = new EntryEncoder(paths.length);
  let prefixes: Buffer[] = [Buffer.alloc(0)];
  let bound = 0;
  let constant = 0;
  let constantValues = prefixes[0]!;
  for (const path of paths) {
    const { definition } = index.compiled;
    const own = tests
      .filter((test) => test.field.text === path.text)
      .map((test) => inCollation(test, definition))
      .filter((test) => test !== undefined);
    const values = givenValues(own, definition.sparse ?? false);
    if (!values || prefixes.length * values.length > maxRanges) {
      const narrowed = narrow(index, own, encoder, prefixes);
      if (narrowed) return { ...narrowed, bound, constant, constantValues };
      break;
    }
    prefixes = prefixes.flatMap((prefix) =>
      values.map((value) => encoder.begin().raw(prefix).value(value).end()),
    );
    if (values.length === 1 && constant === bound) {
      constant++;
      constantValues = prefixes[0]!;
    }
    bound++;
  }
  if (bound === 0) return undefined;
  return { ranges: inOrder(prefixes.map(beginningWith)), bound, constant, constantValues };
}

const textOps = ['gt', 'gte', 'lt', 'lte', 'between', 'prefix'];

/**
 * The test as an index without case can serve it: its text folded, `eqi` as eq, `startsWithi` as
 * prefix. Undefined: the order of its texts is another one than that of the index.
 */
function inCollation(test: FieldTest, definition: IndexDefinition): FieldTest | undefined {
  const { op, value } = test;
  const isText = typeof value === 'string' || (op === 'between' && isTextList(value));
  if (definition.collation === undefined) {
    return op === 'eqi' || op === 'startsWithi' ? undefined : test;
  }
  if (isText && textOps.includes(op)) return undefined;
  const form = (each: Json) => indexForm(each, definition)!;
  if (op === 'eqi') return { ...test, op: 'eq', value: form(value) };
  if (op === 'startsWithi') {
    return { ...test, op: 'prefix', value: (form(value) as string).replace(lastSigma, '') };
  }
  const isList = op === 'in' || op === 'all';
  return { ...test, value: isList ? (value as Json[]).map(form) : form(value) };
}

function isTextList(value: Json): boolean {
  return Array.isArray(value) && typeof value[0] === 'string';
}

function beginningWith(prefix: Buffer): IndexRange {
  return { start: prefix, end: after(prefix) };
}

function inOrder(ranges: readonly IndexRange[]): IndexRange[] {
  return ranges
    .filter(({ start, end }) => Buffer.compare(start, end) < 0)
    .sort((a, b) => Buffer.compare(a.start, b.start));
}

/** The values that one of the tests limits the field to; `undefined` means a missing one. */
function givenValues(
  tests: readonly FieldTest[],
  sparse: boolean,
): readonly (Json | undefined)[] | undefined {
  const equal = tests.find((test) => test.op === 'eq');
  if (equal) return [equal.value];
  const lists = tests.filter((test) => test.op === 'in').map((test) => distinct(test.value));
  if (lists.length > 0) return lists.reduce((a, b) => (b.length < a.length ? b : a));
  // A sparse index leaves out records without its fields, so it cannot find them.
  const missing = tests.some((test) => test.op === 'exists' && test.value === false);
  return missing && !sparse ? [undefined] : undefined;
}

function distinct(list: Json): Json[] {
  const plain = new Set<Json>();
  const nested: Json[] = [];
  for (const value of list as Json[]) {
    if (typeof value !== 'object' || value === null) plain.add(value);
    else if (!nested.some((other) => equalValues(value, other))) nested.push(value);
  }
  return [...plain, ...nested];
}

type Narrowed = Pick<IndexRanges, 'ranges' | 'narrowed'>;

function narrow(
  index: QueryIndex,
  tests: readonly FieldTest[],
  encoder: EntryEncoder,
  prefixes: readonly Buffer[],
): Narrowed | undefined {
  const limits = tests.filter((test) => isLimit(test));
  if (limits.length > 0) {
    // In a record with several values one may pass the first test and another the second, and no
    // single entry both: then only one test can be used as a range.
    const usable = index.multi ? [narrowest(limits)] : limits;
    const ranges = prefixes.map((prefix) =>
      usable.map((test) => limitRange(test, encoder, prefix)).reduce(overlap),
    );
    return { ranges: inOrder(ranges), narrowed: 'range' };
  }
  const contains = tests.find((test) => test.op === 'contains');
  if (contains && (index.multi || typeof contains.value !== 'string')) {
    const ranges = prefixes.flatMap((prefix) => elementRanges(contains.value, encoder, prefix));
    return { ranges: inOrder(ranges), narrowed: 'element' };
  }
  const all = tests.find((test) => test.op === 'all');
  if (all) {
    const [first] = all.value as [Json];
    const ranges = prefixes.map((prefix) =>
      beginningWith(encoder.begin().raw(prefix).element(first).end()),
    );
    return { ranges: inOrder(ranges), narrowed: 'element' };
  }
  const typed = tests.find((test) => test.op === 'type');
  if (typed) {
    const value = exampleOf[typed.value as keyof typeof exampleOf];
    const ranges = prefixes.map((prefix) => typeRange(prefix, value));
    return { ranges: inOrder(ranges), narrowed: 'presence' };
  }
  // In an index of all records this would be nearly all of it.
  const present = tests.some((test) => test.op === 'exists' && test.value === true);
  if (!present || !index.compiled.definition.sparse) return undefined;
  const ranges = prefixes.map((prefix) => tagRange(prefix, tags.null, tags.element));
  return { ranges: inOrder(ranges), narrowed: 'presence' };
}

const telling = ['between', 'prefix', 'gt', 'gte', 'lt', 'lte'];

function isLimit(test: FieldTest): boolean {
  return telling.includes(test.op);
}

function narrowest(limits: readonly FieldTest[]): FieldTest {
  return limits.reduce((a, b) => (telling.indexOf(b.op) < telling.indexOf(a.op) ? b : a));
}

function overlap(a: IndexRange, b: IndexRange): IndexRange {
  return {
    start: Buffer.compare(a.start, b.start) >= 0 ? a.start : b.start,
    end: Buffer.compare(a.end, b.end) <= 0 ? a.end : b.end,
  };
}

function limitRange(test: FieldTest, encoder: EntryEncoder, prefix: Buffer): IndexRange {
  const { op, value } = test;
  if (op === 'between') {
    const [low, high] = value as [Json, Json];
    return overlap(
      limitRange({ ...test, op: 'gte', value: low }, encoder, prefix),
      limitRange({ ...test, op: 'lte', value: high }, encoder, prefix),
    );
  }
  if (op === 'prefix') {
    return beginningWith(
      encoder
        .begin()
        .raw(prefix)
        .textPrefix(value as string)
        .end(),
    );
  }
  const type = typeRange(prefix, value);
  const bytes = encoder.begin().raw(prefix).bound(value).end();
  // Only the prefix of a cut value is known: values that share it may be on either side.
  const { cut } = encoder;
  if (op === 'gt') return { start: cut ? bytes : after(bytes), end: type.end };
  if (op === 'gte') return { start: bytes, end: type.end };
  if (op === 'lt') return { start: type.start, end: cut ? after(bytes) : bytes };
  return { start: type.start, end: after(bytes) };
}

/** `contains` finds elements of arrays, and substrings, which any string may have. */
function elementRanges(value: Json, encoder: EntryEncoder, prefix: Buffer): IndexRange[] {
  const element = beginningWith(encoder.begin().raw(prefix).element(value).end());
  return typeof value === 'string' ? [typeRange(prefix, value), element] : [element];
}

const exampleOf = { null: null, boolean: true, number: 0, text: '', array: [], object: {} };

/** All values of the same type: no op matches across types. */
function typeRange(prefix: Buffer, value: Json): IndexRange {
  switch (rankOf(value)) {
    case ranks.null:
      return tagRange(prefix, tags.null, tags.null + 1);
    case ranks.boolean:
      return tagRange(prefix, tags.false, tags.true + 1);
    case ranks.number:
      return tagRange(prefix, tags.number, tags.number + 1);
    case ranks.string:
      return tagRange(prefix, tags.string, tags.string + 1);
    case ranks.array:
      return tagRange(prefix, tags.array, tags.array + 1);
    default:
      return tagRange(prefix, tags.object, tags.object + 1);
  }
}

function tagRange(prefix: Buffer, from: number, to: number): IndexRange {
  return {
    start: Buffer.concat([prefix, Buffer.from([from])]),
    end: Buffer.concat([prefix, Buffer.from([to])]),
  };
}
