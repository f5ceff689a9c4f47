import { type Json, type JsonObject, refuse } from '../value/documents.js';
import { type Path, type Row, parsePath } from '../value/path.js';
import { suggestion } from '@millrace/kit/nearest';
import { isInRange } from '../format/vector-codes.js';
import { parseFilter, type Condition, type Filter, describe, sentence } from '../value/filter.js';
import { toSortOrder, type OrderBy, type SortOrder } from './sort.js';

/** Makes the wanted parts of a document. */
export type Projection = (row: Pick<Row, 'data' | 'top'>) => JsonObject;

/** Which members to keep, by name; `true` keeps all of one. */
type FieldTree = Map<string, FieldTree | true>;

/** With more fields than this, the whole document is decoded. */
const maxSingleReads = 4;

/**
 * Keeps the parts of a document that the paths select, in their place. In an array a name applies
 * to every element, and elements without it are left out; a number keeps only that element.
 */
export function compileProjection(paths: readonly Path[]): Projection {
  const fields = treeOf(paths);
  if (fields.size > maxSingleReads) return ({ data }) => keepObject(data, fields) ?? {};
  return (row) => {
    const result: JsonObject = {};
    for (const [name, below] of fields) {
      const value = row.top(name);
      const part = value === undefined ? undefined : keepParts(value, below);
      if (part !== undefined) result[name] = part;
    }
    return result;
  };
}

/** The row of a document that was not stored. */
export function rowOf(data: JsonObject): Pick<Row, 'data' | 'top'> {
  return { data, top: (name) => (Object.hasOwn(data, name) ? data[name] : undefined) };
}

function treeOf(paths: readonly Path[]): FieldTree {
  const fields: FieldTree = new Map();
  for (const path of paths) {
    let level = fields;
    for (const [i, { name }] of path.segments.entries()) {
      const known = level.get(name);
      if (known === true) break;
      if (i === path.segments.length - 1) level.set(name, true);
      else {
        const next: FieldTree = known ?? new Map();
        level.set(name, next);
        level = next;
      }
    }
  }
  return fields;
}

function keepParts(value: Json, fields: FieldTree | true): Json | undefined {
  if (fields === true) return value;
  if (typeof value !== 'object' || value === null) return undefined;
  return Array.isArray(value) ? keepArray(value, fields) : keepObject(value, fields);
}

function keepObject(object: JsonObject, fields: FieldTree): JsonObject | undefined {
  let result: JsonObject | undefined;
  for (const [name, below] of fields) {
    if (!Object.hasOwn(object, name)) continue;
    const part = keepParts(object[name]!, below);
    if (part !== undefined) (result ??= {})[name] = part;
  }
  return result;
}

function keepArray(items: Json[], fields: FieldTree): Json[] | undefined {
  const result: Json[] = [];
  const names: FieldTree = new Map([...fields].filter(([name]) => !/^\d+$/.test(name)));
  for (const [i, item] of items.entries()) {
    const picked = fields.get(String(i));
    const part = picked ? keepParts(item, picked) : names.size > 0 && keepParts(item, names);
    if (part !== undefined && part !== false) result.push(part);
  }
  return result.length > 0 ? result : undefined;
}

/** Leaves out the parts of a document that the paths select; in an array, those of every element. */
export function compileExclusion(paths: readonly Path[]): Projection {
  const fields = treeOf(paths);
  return ({ data }) => dropObject(data, fields);
}

function dropParts(value: Json, fields: FieldTree): Json {
  if (typeof value !== 'object' || value === null) return value;
  if (!Array.isArray(value)) return dropObject(value, fields);
  const names: FieldTree = new Map([...fields].filter(([name]) => !/^\d+$/.test(name)));
  return value
    .filter((_, i) => fields.get(String(i)) !== true)
    .map((item) => (names.size > 0 ? dropParts(item, names) : item));
}

function dropObject(object: JsonObject, fields: FieldTree): JsonObject {
  const result: JsonObject = {};
  for (const [name, value] of Object.entries(object)) {
    const below = fields.get(name);
    if (below !== true) result[name] = below ? dropParts(value, below) : value;
  }
  return result;
}

/** A search as in the API: a text, or this. */
export interface SearchQuery {
  /** Words, `"phrases"`, `pre*` and `-excluded` ones. */
  text: string;
  /** `all` (default): every word must be there; `any`: at least one. */
  mode?: 'all' | 'any' | undefined;
  /** Also finds words of five letters and more with one typing mistake. */
  fuzzy?: boolean | undefined;
  /** Returns the text around hits; default: true. */
  highlight?: boolean | undefined;
  /** Only these fields of the index. */
  fields?: readonly string[] | undefined;
}

export interface CheckedSearch {
  readonly text: string;
  readonly mode: 'all' | 'any';
  readonly fuzzy: boolean;
  readonly highlight: boolean;
  readonly fields: readonly string[];
}

/** Joins records of another collection: a left join, whose matches are an array at `as`. */
export interface Lookup {
  /** The other collection. */
  from: string;
  /** Path in the record; of an array each element. */
  local: string;
  /** Path in records of the other collection with the same value. It needs an index. */
  foreign: string;
  /** Field of the record's data that gets the matches. */
  as: string;
  /** Maximum number of matches. Default and maximum: 1,000. */
  limit?: number | undefined;
}

export interface CheckedLookup {
  readonly from: string;
  readonly local: Path;
  readonly foreign: Path;
  readonly as: string;
  readonly limit: number;
}

const maxLookups = 8;
const maxMatches = 1_000;

export function checkLookups(input: unknown): readonly CheckedLookup[] {
  const list = listOf(
    input === undefined || Array.isArray(input) ? input : [input],
    'lookup',
    maxLookups,
  );
  return list.map((item, i) => {
    const place = `lookup[${i}]`;
    const names = ['from', 'local', 'foreign', 'as', 'limit'] as const;
    const { from, local, foreign, as, limit } = membersOf(item, place, names);
    if (typeof from !== 'string' || from === '')
      throw bad(`${place}.from`, 'must name a collection');
    if (typeof as !== 'string' || as === '' || /^\$|\.|^__proto__$/.test(as)) {
      throw bad(`${place}.as`, 'must be the name of a field, without "." and "$"');
    }
    const most = wholeNumber(limit, `${place}.limit`) || maxMatches;
    return {
      from,
      local: pathOf(local, `${place}.local`),
      foreign: pathOf(foreign, `${place}.foreign`),
      as,
      limit: Math.min(most, maxMatches),
    };
  });
}

/** The records whose vector is nearest to one. */
export interface NearQuery {
  /** Path of the field with a vector index. */
  field: string;
  vector: readonly number[] | Float32Array;
  /** How many; at most 1,000. Default: 10. */
  k?: number | undefined;
}

export interface CheckedNear {
  readonly field: string;
  readonly vector: Float32Array;
  readonly k: number;
}

const maxNeighbours = 1_000;
const defaultNeighbours = 10;

function checkNear(input: unknown): CheckedNear | undefined {
  if (input === undefined) return undefined;
  const { field, vector, k } = membersOf(input, 'near', ['field', 'vector', 'k']);
  const path = pathOf(field, 'near.field');
  const list = vector instanceof Float32Array ? Array.from(vector) : vector;
  if (
    !Array.isArray(list) ||
    !list.every((one) => typeof one === 'number' && Number.isFinite(one))
  ) {
    throw bad('near.vector', 'must be a list of numbers');
  }
  if (!isInRange(list as number[])) throw bad('near.vector', 'has a number beyond float32');
  const count = wholeNumber(k, 'near.k') || defaultNeighbours;
  if (count > maxNeighbours) throw bad('near.k', `is ${count}; the maximum is ${maxNeighbours}`);
  return { field: path.text, vector: Float32Array.from(list as number[]), k: count };
}

/** A query for records. */
export interface FindQuery {
  /** Which records. Default: all. */
  filter?: Filter | undefined;
  /** The id is always the last tie-break. Default: by id. */
  orderBy?: readonly OrderBy[] | undefined;
  /** Maximum number of records. 0 or absent: all. */
  limit?: number | undefined;
  /** Number of matching records to skip. Not skipped again after a cursor. */
  skip?: number | undefined;
  /** `nextCursor` of the previous page, with the same filter and order. */
  cursor?: string | undefined;
  /** Dotted paths of the fields of `data` to return. Default: all. */
  fields?: readonly string[] | undefined;
  /** Dotted paths of the fields of `data` to leave out, in place of `fields`. */
  projection?: { exclude: readonly string[] } | undefined;
  explain?: boolean | undefined;
  /** Only counts the matches, regardless of limit, skip and cursor. */
  countOnly?: boolean | undefined;
  /** False: refuse a query that no index serves. */
  allowFullScan?: boolean | undefined;
  /** Words to find, best hits first: at most 1,000. Needs a search index. */
  search?: string | SearchQuery | undefined;
  /** The nearest vectors, best first. Needs a vector index; with `search`, by reciprocal rank. */
  near?: NearQuery | undefined;
  /** The same as `skip`. */
  offset?: number | undefined;
  /** Joins records of other collections. */
  lookup?: Lookup | readonly Lookup[] | undefined;
}

/** A validated query. */
export interface CheckedFind {
  readonly condition: Condition;
  readonly order: SortOrder;
  /** Infinity: all. */
  readonly limit: number;
  readonly skip: number;
  readonly cursor: string;
  readonly project: Projection | undefined;
  readonly explain: boolean;
  readonly countOnly: boolean;
  readonly allowFullScan: boolean;
  readonly search?: CheckedSearch | undefined;
  readonly near?: CheckedNear | undefined;
  readonly lookups: readonly CheckedLookup[];
}

const maxOrderSteps = 16;
const maxProjectedFields = 1000;
const maxQueryLength = 1_000;

const findMembers = [
  'filter',
  'orderBy',
  'limit',
  'skip',
  'cursor',
  'fields',
  'projection',
  'explain',
  'countOnly',
  'allowFullScan',
  'search',
  'near',
  'offset',
  'lookup',
] as const;

export function bad(place: string, problem: string): Error {
  return refuse('BAD_REQUEST', sentence(`${place} ${problem}`));
}

/** Validates a query from outside: BAD_FILTER for its filter, BAD_REQUEST for the rest. */
export function checkFind(input: unknown): CheckedFind {
  const query = membersOf(input, 'The query', findMembers);
  if (query.offset !== undefined && query.skip)
    throw bad('offset', 'and skip are the same: use one');
  const search = checkSearch(query.search);
  const near = checkNear(query.near);
  if (
    (search || near) &&
    (query.cursor || listOf(query.orderBy, 'orderBy', maxOrderSteps).length > 0)
  ) {
    throw bad(
      search ? 'search' : 'near',
      'gives the order, so it cannot have orderBy or cursor: use limit and offset',
    );
  }
  return {
    condition: parseFilter(query.filter),
    order: checkOrder(query.orderBy),
    limit: wholeNumber(query.limit, 'limit') || Infinity,
    skip: wholeNumber(query.skip || query.offset, 'skip'),
    cursor: textOf(query.cursor, 'cursor'),
    project: checkProjection(query.fields, query.projection),
    explain: flag(query.explain, 'explain', false),
    countOnly: flag(query.countOnly, 'countOnly', false),
    allowFullScan: flag(query.allowFullScan, 'allowFullScan', true),
    search,
    near,
    lookups: checkLookups(query.lookup),
  };
}

export function checkSearch(input: unknown): CheckedSearch | undefined {
  if (input === undefined) return undefined;
  const given = typeof input === 'string' ? { text: input } : input;
  const names = ['text', 'mode', 'fuzzy', 'highlight', 'fields'] as const;
  const { text, mode = 'all', fuzzy, highlight, fields } = membersOf(given, 'search', names);
  if (typeof text !== 'string' || text.trim() === '') throw bad('search.text', 'is missing');
  if (text.length > maxQueryLength) {
    throw bad('search.text', `has more than ${maxQueryLength} characters`);
  }
  if (mode !== 'all' && mode !== 'any') throw bad('search.mode', 'must be "all" or "any"');
  return {
    text,
    mode,
    fuzzy: flag(fuzzy, 'search.fuzzy', false),
    highlight: flag(highlight, 'search.highlight', true),
    fields: listOf(fields, 'search.fields', 16).map((field) => pathOf(field, 'search.fields').text),
  };
}

/** The members of an object, which must all be known. */
export function membersOf<Name extends string>(
  input: unknown,
  place: string,
  known: readonly Name[],
): { [name in Name]?: unknown } {
  if (input === undefined) return {};
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    throw bad(place, `must be an object, not ${describe(input)}`);
  }
  for (const name of Object.keys(input)) {
    if (!(known as readonly string[]).includes(name)) {
      throw bad(place, `has an unknown member "${name}"${suggestion(name, known)}`);
    }
  }
  return input;
}

export function listOf(value: unknown, place: string, maxLength: number): unknown[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw bad(place, `must be a list, not ${describe(value)}`);
  if (value.length > maxLength) {
    throw bad(place, `has ${value.length} items; the maximum is ${maxLength}`);
  }
  return value;
}

export function pathOf(value: unknown, place: string): Path {
  if (typeof value !== 'string') {
    throw bad(place, `must be the path of a field, not ${describe(value)}`);
  }
  return parsePath(value, (problem) => bad(place, `${problem}: "${value}"`));
}

export function wholeNumber(value: unknown, place: string): number {
  if (value === undefined) return 0;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw bad(place, `must be a whole number from 0 on, not ${describe(value)}`);
}

export function flag(value: unknown, place: string, otherwise: boolean): boolean {
  if (value === undefined) return otherwise;
  if (typeof value === 'boolean') return value;
  throw bad(place, `must be true or false, not ${describe(value)}`);
}

/** The steps of an order, with fields resolved by `fieldOf`. */
export function orderSteps<Field>(
  value: unknown,
  fieldOf: (field: unknown, place: string) => Field,
): { field: Field; desc: boolean }[] {
  return listOf(value, 'orderBy', maxOrderSteps).map((item, i) => {
    const place = `orderBy[${i}]`;
    if (item === undefined) throw bad(place, 'is missing');
    const step = membersOf(item, place, ['field', 'desc']);
    return {
      field: fieldOf(step.field, `${place}.field`),
      desc: flag(step.desc, `${place}.desc`, false),
    };
  });
}

function checkOrder(value: unknown): SortOrder {
  const steps = orderSteps(value, pathOf);
  return toSortOrder(steps.map(({ field, desc }) => ({ path: field, desc })));
}

function textOf(value: unknown, place: string): string {
  if (value === undefined) return '';
  if (typeof value === 'string') return value;
  throw bad(place, `must be a text, not ${describe(value)}`);
}

function checkProjection(fields: unknown, projection: unknown): Projection | undefined {
  const include = checkFields(fields);
  if (projection === undefined) return include;
  const { exclude } = membersOf(projection, 'projection', ['exclude']);
  const list = listOf(exclude, 'projection.exclude', maxProjectedFields);
  if (list.length === 0) return include;
  if (include) throw bad('projection', 'leaves fields out and fields names some: use one of them');
  const paths = list.map((field, i) => {
    const path = pathOf(field, `projection.exclude[${i}]`);
    if (!path.own) return path;
    throw bad(`projection.exclude[${i}]`, `cannot be ${path.text}, which is not a part of data`);
  });
  return compileExclusion(paths);
}

function checkFields(value: unknown): Projection | undefined {
  const fields = listOf(value, 'fields', maxProjectedFields);
  if (fields.length === 0) return undefined;
  const paths = fields.map((field, i) => pathOf(field, `fields[${i}]`));
  // The record's own fields are always included.
  return compileProjection(paths.filter((path) => !path.own));
}
