import type { Json } from '../value/documents.js';
import type { CompiledIndex } from '../format/entries.js';
import { canonicalText, conditionText, elementConditions } from '../value/filter.js';
import type { Condition, FieldTest } from '../value/filter.js';
import type { Path } from '../value/path.js';
import { compilePredicate, rowOf } from '../value/predicate.js';
import { indexRanges, type IndexRange, type QueryIndex } from './ranges.js';
import type { SortOrder } from './sort.js';

/**
 * The access path of a query. It yields all matching records, and possibly others: the filter is
 * always tested on the record itself.
 */
export type Access =
  | { readonly kind: 'scan' }
  | IdRangeAccess
  | { readonly kind: 'ids'; readonly ids: readonly string[] }
  | { readonly kind: 'keys'; readonly keys: readonly string[] }
  | IndexAccess
  | { readonly kind: 'union'; readonly parts: readonly Access[] };

/** Ids from `low` to `high`, both included. */
export interface IdRangeAccess {
  readonly kind: 'idRange';
  readonly low: string | undefined;
  readonly high: string | undefined;
}

export interface IndexAccess {
  readonly kind: 'index';
  readonly index: QueryIndex;
  /** In order, without overlap. */
  readonly ranges: readonly IndexRange[];
  /** Number of leading fields that have one fixed value in all ranges. */
  readonly constant: number;
  /** Those values, encoded. */
  readonly constantValues: Uint8Array;
}

export interface Plan {
  readonly access: Access;
  /**
   * `given`: the access path yields the records in order, read backwards if `reverse`. `byId`: only
   * their ids have to be sorted. `sort`: they have to be sorted by their values.
   */
  readonly order: 'given' | 'byId' | 'sort';
  readonly reverse: boolean;
  /** Its fields, separated by commas; "" when the whole collection is read. */
  readonly indexName: string;
}

interface Candidate {
  access: Access;
  /** A higher number means fewer expected records. */
  strength: number;
}

/**
 * There are no statistics, so the choice goes by what usually leaves the fewest records: ids and
 * keys, then all fields of a unique index, then the most fields bound to values by eq or in, then a
 * range after them, then a range alone, then the presence of a field. Among equals, the one that
 * also gives the order, then the one declared first. An index that only gives the order is the last
 * resort before reading the whole collection.
 */
const strengths = {
  ids: 2000,
  unique: 1000,
  boundField: 10,
  allBound: 0.25,
  range: 5,
  element: 7,
  presence: 2,
  orderOnly: 1,
  givesOrder: 0.5,
  union: -0.25,
} as const;

export function planQuery(
  condition: Condition,
  order: SortOrder,
  indexes: readonly QueryIndex[],
): Plan {
  // A search index serves `search` alone.
  const ready = indexes.filter(
    ({ state, compiled }) => state === 'ready' && compiled.definition.kind === undefined,
  );
  const candidates = candidatesFor(condition, ready);
  const conjuncts = conjunctsOf(condition);
  const tests = testsOf(conjuncts);
  for (const index of ready) {
    if (holds(index.compiled.where, conjuncts)) candidates.push(...orderOnly(index, tests));
  }

  let best: { plan: Plan; strength: number } | undefined;
  for (const { access, strength } of candidates) {
    const plan = withOrder(access, order);
    const given = plan.order === 'given';
    if (strength <= strengths.orderOnly && !given) continue;
    const total = strength + (given ? strengths.givesOrder : 0);
    if (!best || total > best.strength) best = { plan, strength: total };
  }
  // A scan is already in id order: an index that only gives the order cannot do better.
  return best?.plan ?? withOrder({ kind: 'scan' }, order);
}

/** Every access path that this condition allows. */
function candidatesFor(condition: Condition, indexes: readonly QueryIndex[]): Candidate[] {
  const conjuncts = conjunctsOf(condition);
  const tests = testsOf(conjuncts);
  const found: Candidate[] = [];
  for (const test of tests) {
    const access = ownAccess(test);
    if (access) found.push(access);
  }
  for (const index of indexes) {
    const candidate = indexAccess(index, tests);
    if (candidate && holds(index.compiled.where, conjuncts)) found.push(candidate);
  }
  for (const part of conjuncts) {
    const union = part.kind === 'or' ? unionAccess(part.parts, indexes) : undefined;
    if (union) found.push(union);
  }
  return found;
}

function conjunctsOf(condition: Condition): readonly Condition[] {
  return condition.kind === 'and' ? condition.parts : [condition];
}

/** The tests that must hold, and those on fields of elements that an `elemMatch` implies. */
function testsOf(conjuncts: readonly Condition[]): FieldTest[] {
  const tests = conjuncts.filter((part) => part.kind === 'test');
  const implied = tests.flatMap(({ field, op, value }) => {
    if (op !== 'elemMatch' || field.own) return [];
    const { element, fields } = elementConditions(value, 'elemMatch');
    if (!fields || element) return [];
    return conjunctsOf(fields)
      .filter((part) => part.kind === 'test')
      .filter((part) => isPositive(part) && !part.field.own && part.field.segments[0]!.index < 0)
      .map((part) => ({ ...part, field: below(field, part.field) }));
  });
  return [...tests, ...implied];
}

function below(field: Path, part: Path): Path {
  const segments = [...field.segments, ...part.segments];
  return { text: `${field.text}.${part.text}`, segments, isTime: false };
}

/** False for the tests that a missing field passes. */
function isPositive({ op, value }: FieldTest): boolean {
  return op !== 'ne' && op !== 'nin' && !(op === 'exists' && value === false);
}

/** Whether every record that matches the conjuncts also matches the condition of an index. */
function holds(where: Condition, conjuncts: readonly Condition[]): boolean {
  if (where.kind === 'all') return true;
  return conjunctsOf(where).every((part) => {
    const text = canonicalText(conditionText(part));
    return conjuncts.some(
      (given) =>
        canonicalText(conditionText(given)) === text ||
        (part.kind === 'test' && given.kind === 'test' && implies(given, part)),
    );
  });
}

const above: readonly string[] = ['gt', 'gte'];
const under: readonly string[] = ['lt', 'lte'];

/** Whether a value that passes one test passes the other, which is on the same field. */
function implies(given: FieldTest, wanted: FieldTest): boolean {
  if (given.field.text !== wanted.field.text || !isPositive(wanted)) return false;
  if (wanted.op === 'exists') return isPositive(given);
  const isSameSide =
    (above.includes(given.op) && above.includes(wanted.op)) ||
    (under.includes(given.op) && under.includes(wanted.op));
  const values = given.op === 'in' ? (given.value as Json[]) : [given.value];
  if (given.op !== 'eq' && given.op !== 'in' && !isSameSide) return false;
  // The limit of a range that excludes it may pass only where the other excludes it, too.
  const op = isSameSide && given.op.length === 2 && wanted.op.length === 2 ? `${wanted.op}e` : '';
  const test = { ...wanted, op: (op || wanted.op) as FieldTest['op'] };
  const field = {
    text: 'v',
    segments: [{ name: 'v', index: -1, inherited: false }],
    isTime: false,
  };
  const passes = compilePredicate({ ...test, field });
  return values.every((value) => passes(rowOf({ v: value })));
}

/** By the record's own id or key. */
function ownAccess({ field, op, value }: FieldTest): Candidate | undefined {
  if (field.text !== '$id' && field.text !== '$key') return undefined;
  if (op === 'eq' || op === 'in') {
    const values = op === 'eq' ? [value] : (value as Json[]);
    const texts = values.filter((one) => typeof one === 'string');
    // A record without a key has "" for it, and is not in the key table.
    if (field.text === '$key' && texts.includes('')) return undefined;
    const access: Access =
      field.text === '$id' ? { kind: 'ids', ids: texts } : { kind: 'keys', keys: texts };
    return { access, strength: strengths.ids };
  }
  if (field.text === '$key') return undefined;
  const access = idRange(op, value);
  return access && { access, strength: strengths.range };
}

function idRange(op: FieldTest['op'], value: Json): IdRangeAccess | undefined {
  const [low, high] = op === 'between' ? (value as Json[]) : [value, value];
  if (typeof low !== 'string' || typeof high !== 'string') return undefined;
  const above = op === 'gt' || op === 'gte' || op === 'between';
  const below = op === 'lt' || op === 'lte' || op === 'between';
  if (!above && !below) return undefined;
  return { kind: 'idRange', low: above ? low : undefined, high: below ? high : undefined };
}

function indexAccess(index: QueryIndex, tests: readonly FieldTest[]): Candidate | undefined {
  const found = indexRanges(index, tests);
  if (!found) return undefined;
  const { ranges, bound, constant, constantValues, narrowed } = found;
  const fields = index.compiled.paths.length;
  let strength = bound * strengths.boundField;
  if (bound === fields) {
    strength += strengths.allBound;
    if (index.compiled.definition.unique && constant === fields) strength = strengths.unique;
  }
  if (narrowed) strength += strengths[narrowed];
  return { access: { kind: 'index', index, ranges, constant, constantValues }, strength };
}

/** The whole index, for its order. A sparse one must contain every matching record. */
function orderOnly(index: QueryIndex, tests: readonly FieldTest[]): Candidate[] {
  const { definition, paths } = index.compiled;
  if (definition.sparse && !tests.some((test) => isPresent(test, paths))) return [];
  const nothing = Buffer.alloc(0);
  const ranges = [{ start: nothing, end: Buffer.from([0xff]) }];
  const access: Access = { kind: 'index', index, ranges, constant: 0, constantValues: nothing };
  return [{ access, strength: strengths.orderOnly }];
}

function isPresent(test: FieldTest, paths: CompiledIndex['paths']): boolean {
  return isPositive(test) && paths.some((path) => path.text === test.field.text);
}

/**
 * The union over `or`, when every branch has an access path; otherwise all records must be read.
 */
function unionAccess(
  branches: readonly Condition[],
  indexes: readonly QueryIndex[],
): Candidate | undefined {
  const parts: Access[] = [];
  let weakest = Infinity;
  for (const branch of branches) {
    const candidates = candidatesFor(branch, indexes);
    if (candidates.length === 0) return undefined;
    const best = candidates.reduce((a, b) => (b.strength > a.strength ? b : a));
    parts.push(best.access);
    weakest = Math.min(weakest, best.strength);
  }
  return { access: { kind: 'union', parts }, strength: weakest + strengths.union };
}

function withOrder(access: Access, order: SortOrder): Plan {
  const indexName = nameOf(access);
  const byId = order.keys.length === 0;
  if (access.kind === 'scan' || access.kind === 'idRange') {
    return byId
      ? { access, order: 'given', reverse: order.idDesc, indexName }
      : { access, order: 'sort', reverse: false, indexName };
  }
  const reverse = access.kind === 'index' ? directionOf(access, order) : undefined;
  if (reverse !== undefined) return { access, order: 'given', reverse, indexName };
  return { access, order: byId ? 'byId' : 'sort', reverse: order.idDesc, indexName };
}

/** Whether to read the index backwards to get the order; `undefined` when it does not give it. */
function directionOf({ index, constant }: IndexAccess, order: SortOrder): boolean | undefined {
  const { paths } = index.compiled;
  // With several entries per record, or with cut values, the index order is not the record order.
  if (index.cut || index.multi) return undefined;
  // Without its case one value stands for several texts, whose order the index does not have.
  const isFolded = index.compiled.definition.collation !== undefined;
  if (isFolded && (constant < paths.length || order.keys.length > 0)) return undefined;
  const fixed = new Set(paths.slice(0, constant).map((path) => path.text));
  const keys = order.keys.filter((key) => !fixed.has(key.path.text));
  // A further index field would come before the id.
  if (constant + keys.length !== paths.length) return undefined;
  if (!keys.every((key, i) => key.path.text === paths[constant + i]!.text)) return undefined;
  if (keys.length === 0) return order.idDesc;
  const desc = keys[0]!.desc;
  if (keys.some((key) => key.desc !== desc)) return undefined;
  return desc || !order.idDesc ? desc : undefined;
}

function nameOf(access: Access): string {
  switch (access.kind) {
    case 'scan':
      return '';
    case 'ids':
    case 'idRange':
      return '$id';
    case 'keys':
      return '$key';
    case 'index':
      return access.index.compiled.name;
    case 'union':
      return [...new Set(access.parts.map(nameOf))].join(' or ');
  }
}
