import type { Json, JsonObject } from '../value/documents.js';
import type { Filter } from '../value/filter.js';
import type { TestRecord } from './memory-view.test-support.js';
import type { OrderBy } from './sort.js';

/**
 * What filters and orders mean, written again in the plainest way and from the specification
 * alone: what the planner and its walks are held against.
 */
export function modelFind(
  records: readonly TestRecord[],
  filter: Filter,
  orderBy: readonly OrderBy[],
): string[] {
  const found = records.filter((record) => modelMatches(record, filter));
  return found.sort((a, b) => modelOrder(a, b, orderBy)).map((record) => record.id);
}

export function modelMatches(record: TestRecord, filter: Filter): boolean {
  const { field, op, value, and = [], or, not } = filter;
  if (field !== undefined && !modelTest(valuesAt(record, field), op!, value)) return false;
  if (!and.every((part) => modelMatches(record, part))) return false;
  if (or && !or.some((part) => modelMatches(record, part))) return false;
  return !not || !modelMatches(record, not);
}

function modelTest(found: Json[], op: string, value: Json | undefined): boolean {
  const any = (test: (one: Json) => boolean) => found.some(test);
  const compares = (one: Json, other: Json) =>
    typeRank(one) === typeRank(other) ? modelCompare(one, other) : NaN;
  switch (op) {
    case 'eq':
      return any((one) => compares(one, value!) === 0);
    case 'ne':
      return !any((one) => compares(one, value!) === 0);
    case 'gt':
      return any((one) => compares(one, value!) > 0);
    case 'gte':
      return any((one) => compares(one, value!) >= 0);
    case 'lt':
      return any((one) => compares(one, value!) < 0);
    case 'lte':
      return any((one) => compares(one, value!) <= 0);
    case 'in':
      return (value as Json[]).some((each) => any((one) => compares(one, each) === 0));
    case 'nin':
      return !(value as Json[]).some((each) => any((one) => compares(one, each) === 0));
    case 'exists':
      return found.length > 0 === (value ?? true);
    case 'between': {
      const [low, high] = value as [Json, Json];
      return any((one) => compares(one, low) >= 0 && compares(one, high) <= 0);
    }
    case 'prefix':
      return any((one) => typeof one === 'string' && one.indexOf(value as string) === 0);
    case 'contains':
      return any((one) =>
        typeof one === 'string'
          ? typeof value === 'string' && one.split(value).length > (value === '' ? -1 : 1)
          : Array.isArray(one) && one.some((each) => compares(each, value!) === 0),
      );
    case 'eqi':
      return any((one) => typeof one === 'string' && lower(one) === lower(value as string));
    case 'startsWithi':
      return any((one) => {
        const start = lower(value as string);
        const plain = (text: string) => text.slice(0, start.length).replace(/ς$/, 'σ');
        return typeof one === 'string' && plain(lower(one)) === plain(start);
      });
    case 'type':
      return any((one) => typeRank(one) === typeRanks[value as keyof typeof typeRanks]);
    case 'size':
      return any((one) => Array.isArray(one) && one.length === value);
    case 'all':
      return any(
        (one) =>
          Array.isArray(one) &&
          (value as Json[]).every((each) => one.some((item) => compares(item, each) === 0)),
      );
    case 'elemMatch':
      return any((one) => Array.isArray(one) && one.some((item) => modelElement(item, value!)));
    case 'regex':
      return any((one) => typeof one === 'string' && new RegExp(value as string, 'u').test(one));
    default:
      throw new Error(`no such op: ${op}`);
  }
}

const typeRanks = { null: 1, boolean: 2, number: 3, text: 4, array: 5, object: 6 };

function lower(text: string): string {
  return text.normalize('NFC').toLowerCase();
}

/** `{ field: { op: value } }` on an object, `{ op: value }` on anything else. */
function modelElement(item: Json, condition: Json): boolean {
  const tests = Object.entries(condition as JsonObject);
  if (tests.some(([, test]) => typeof test === 'object' && test !== null)) {
    if (typeRank(item) !== 6) return false;
    const record = { id: '', data: item as JsonObject };
    return tests.every(([field, test]) =>
      Object.entries(test as JsonObject).every(([op, value]) =>
        modelTest(valuesAt(record, field), op, value),
      ),
    );
  }
  return tests.every(([op, value]) => modelTest([item], op, value));
}

function valuesAt(record: TestRecord, field: string): Json[] {
  if (field === '$id') return [record.id];
  if (field === '$key') return [record.key ?? ''];
  if (field === '$rev') return [record.rev ?? 1];
  return field
    .split('.')
    .reduce<Json[]>((reached, name) => reached.flatMap((v) => into(v, name)), [record.data]);
}

function into(value: Json, name: string): Json[] {
  if (typeof value !== 'object' || value === null) return [];
  if (!Array.isArray(value)) return Object.hasOwn(value, name) ? [value[name]!] : [];
  if (/^\d+$/.test(name)) return value.slice(Number(name), Number(name) + 1);
  return value.flatMap((element) => into(element, name));
}

function modelOrder(a: TestRecord, b: TestRecord, orderBy: readonly OrderBy[]): number {
  for (const { field, desc } of orderBy) {
    const pick = (record: TestRecord) => {
      const sorted = valuesAt(record, field).sort(modelCompare);
      return desc ? sorted.at(-1) : sorted[0];
    };
    const order = modelCompare(pick(a), pick(b));
    if (order !== 0) return desc ? -order : order;
  }
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}

function typeRank(value: Json | undefined): number {
  if (value === undefined) return 0;
  if (value === null) return 1;
  if (Array.isArray(value)) return 5;
  return { boolean: 2, number: 3, string: 4, object: 6 }[typeof value as string]!;
}

export function modelCompare(a: Json | undefined, b: Json | undefined): number {
  const rank = typeRank(a) - typeRank(b);
  if (rank !== 0 || a === undefined || a === null) return rank;
  if (typeof a === 'string') return compareLists(codePoints(a), codePoints(b as string));
  if (Array.isArray(a)) return compareLists(a, b as Json[]);
  if (typeof a === 'object') return compareLists(pairs(a), pairs(b as JsonObject));
  return Number(a) < Number(b) ? -1 : Number(a) > Number(b) ? 1 : 0;
}

function compareLists(a: Json[], b: Json[]): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const order = modelCompare(a[i], b[i]);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

function codePoints(text: string): number[] {
  return Array.from(text, (letter) => letter.codePointAt(0)!);
}

function pairs(object: JsonObject): Json[] {
  return Object.entries(object).sort(([a], [b]) => compareLists(codePoints(a), codePoints(b)));
}
