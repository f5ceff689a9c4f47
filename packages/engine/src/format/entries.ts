import { suggestion } from '@millrace/kit/nearest';
import { type Json, refuse } from '../value/documents.js';
import { foldText, parseFilter, type Condition } from '../value/filter.js';
import { plainFilter } from '../value/plain-query.js';
import { compilePredicate } from '../value/predicate.js';
import { forEachValue, parsePath, plainValue, type Path, type Row } from '../value/path.js';
import { EntryEncoder, maxIndexFields } from './encoding.js';
import { searchEntries } from './search-entries.js';
import type { PayloadTerms } from './search-pages.js';
import { encodeVector, isInRange, vectorTag } from './vector-codes.js';

export interface IndexDefinition {
  /** Dotted paths into data; also `$key`, `$rev`, `$created_at`, `$updated_at`, `$expires_at`. */
  fields: readonly string[];
  /** No two records have the same values. See `IndexEntries.unique` for the exceptions. */
  unique?: boolean | undefined;
  /** Records that lack all of the fields are left out. */
  sparse?: boolean | undefined;
  /** `ci`: text without its case, for `eqi` and `startsWithi`. Such an index gives no order. */
  collation?: 'ci' | undefined;
  /** A partial index: only records that match this filter are in it. */
  where?: object | undefined;
  /** `search`: an index of the words in its fields; `vector`: of vectors. Absent: of values. */
  kind?: 'search' | 'vector' | undefined;
  /** Length of the vectors of a vector index. */
  dims?: number | undefined;
  /** How a vector index compares. Default: `cosine`. */
  metric?: 'cosine' | 'dot' | 'l2' | undefined;
  /** How a vector index stores numbers: `float32` (default) in four bytes, `int8` in one. */
  storage?: 'float32' | 'int8' | undefined;
  /** Language of a search index, for stems and stop words: `en`, `de` ... Default: `none`. */
  language?: string | undefined;
  /** How much a word in each field of a search index counts. Default: 1. */
  weights?: Readonly<Record<string, number>> | undefined;
}

/** A search index as it is declared: `search` names the fields. */
export interface SearchDefinition {
  search: readonly string[];
  language?: string | undefined;
  weights?: Readonly<Record<string, number>> | undefined;
  where?: object | undefined;
}

/** A vector index as it is declared: `vector` names the field. */
export interface VectorDefinition {
  vector: string;
  dims: number;
  metric?: 'cosine' | 'dot' | 'l2' | undefined;
  storage?: 'float32' | 'int8' | undefined;
  where?: object | undefined;
}

/** An index in any form. */
export type DeclaredIndex = IndexDefinition | SearchDefinition | VectorDefinition;

const definitionMembers: readonly string[] = [
  'fields',
  'search',
  'vector',
  'unique',
  'sparse',
  'collation',
  'where',
  'kind',
  'dims',
  'metric',
  'storage',
  'language',
  'weights',
];

/** The definition of an index that was declared in either form. */
export function definitionOf(declared: DeclaredIndex): IndexDefinition {
  if (typeof declared !== 'object' || declared === null) {
    throw refuse('BAD_REQUEST', 'An index must be an object such as { fields: ["age"] }.');
  }
  const { search, vector, ...rest } = declared as Partial<
    IndexDefinition & SearchDefinition & VectorDefinition
  >;
  for (const name of Object.keys(declared)) {
    if (definitionMembers.includes(name)) continue;
    const hint = suggestion(name, definitionMembers) || '.';
    throw refuse('BAD_REQUEST', `An index has an unknown member "${name}"${hint}`);
  }
  const given = [rest.fields, search, vector].filter((each) => each !== undefined);
  if (given.length > 1) {
    throw refuse('BAD_REQUEST', 'An index has one of fields, search and vector.');
  }
  if (search !== undefined) return { ...rest, fields: search, kind: 'search' };
  if (vector !== undefined) return { ...rest, fields: [vector], kind: 'vector' };
  return rest as IndexDefinition;
}

export interface CompiledIndex {
  readonly definition: IndexDefinition;
  /** The fields, separated by commas. */
  readonly name: string;
  readonly paths: readonly Path[];
  /** What every record in the index matches. */
  readonly where: Condition;
  /** Records of a vector index that changed, by commit, complete for commits after `since`. */
  readonly touched: { ids: Map<string, number>; since: number };
  /** The entries of the record in the index. Throws BAD_DATA when there are too many. */
  entriesOf(row: Row): IndexEntries;
}

export interface IndexEntries {
  /** The encoded values of each entry, without prefix and id, no duplicates. */
  values: Uint8Array[];
  /** The record has an array in or above a field, so it may have several entries. */
  multi: boolean;
  /** A value was too long: its order is exact only up to the cut. */
  cut: boolean;
  /** `unique` is not empty. */
  constrained: boolean;
  /**
   * In a unique index, the entries that no other record may have. As in SQL, a record in which one
   * of the fields is missing or null conflicts with none. An array as a value is unique as a whole:
   * two records may share elements; through an array (`emails.address`) each value counts.
   */
  unique: Uint8Array[];
  /** Stored as the value of the entries: the vector, as `vector-codes.ts` has it. */
  payload?: Buffer;
  /** Why a new record with these entries is refused. Earlier versions took it. */
  problem?: string;
  /** Of a search index: where the terms are in the payload. */
  terms?: PayloadTerms;
}

/** Maximum number of entries of one record in one index. */
const maxEntries = 1000;

/** Its fields with commas between; of a search index with `search:` before. */
export function indexName({ fields, kind }: Pick<IndexDefinition, 'fields' | 'kind'>): string {
  return `${kind === undefined ? '' : `${kind}:`}${fields.join(',')}`;
}

export function compileIndex(definition: IndexDefinition): CompiledIndex {
  if (!Array.isArray(definition.fields)) {
    throw refuse('BAD_REQUEST', 'An index needs fields: a list of paths.');
  }
  const name = indexName(definition);
  const paths = checkFields(definition.fields, name);
  const { collation, where } = definition;
  if (collation !== undefined && collation !== 'ci') {
    throw refuse('BAD_REQUEST', `The index "${name}" has an unknown collation; use "ci".`);
  }
  checkKind(definition, name, paths);
  const entriesOf = compileEntries(definition, name, paths);
  const condition = parseFilter(plainFilter(where, 'where'), 'where');
  const isIn = compilePredicate(condition);
  return {
    definition,
    name,
    paths,
    where: condition,
    touched: { ids: new Map(), since: 0 },
    entriesOf: where === undefined ? entriesOf : (row) => (isIn(row) ? entriesOf(row) : noEntry()),
  };
}

function checkKind(definition: IndexDefinition, name: string, paths: readonly Path[]): void {
  const { kind, language, weights, unique, sparse, collation } = definition;
  const { dims, metric, storage } = definition;
  const fail = (problem: string) => refuse('BAD_REQUEST', `The index "${name}" ${problem}.`);
  if (kind !== 'search' && (language !== undefined || weights !== undefined)) {
    throw fail('has a language or weights, which only an index with search has');
  }
  if (kind !== 'vector' && (dims !== undefined || metric !== undefined || storage !== undefined)) {
    throw fail('has dims, a metric or a storage, which only an index with vector has');
  }
  if (kind === undefined) return;
  if (kind !== 'search' && kind !== 'vector') {
    throw fail(`is of the kind "${String(kind)}", which this version does not know: upgrade it`);
  }
  if (unique || sparse || collation !== undefined) {
    throw fail(`is a ${kind} index, which cannot be unique, sparse or have a collation`);
  }
  if (paths.some((path) => path.own)) throw fail('can have fields of data only');
  if (kind === 'vector') {
    if (!Number.isSafeInteger(dims) || dims! < 1 || dims! > maxDims) {
      throw fail(`needs dims: a whole number from 1 to ${maxDims}`);
    }
    if (metric !== undefined && !['cosine', 'dot', 'l2'].includes(metric)) {
      throw fail('has an unknown metric; use cosine, dot or l2');
    }
    if (storage !== undefined && storage !== 'float32' && storage !== 'int8') {
      throw fail('has an unknown storage; use float32 or int8');
    }
  }
  for (const [field, weight] of Object.entries(weights ?? {})) {
    if (!definition.fields.includes(field))
      throw fail(`has a weight of "${field}", not a field of it`);
    if (typeof weight !== 'number' || !(weight > 0) || weight > 1000) {
      throw fail(`has a weight of "${field}" that is not a number above 0, at most 1000`);
    }
  }
}

function compileEntries(
  definition: IndexDefinition,
  name: string,
  paths: readonly Path[],
): EntriesOf {
  if (definition.kind === 'search') return searchEntries(definition, paths);
  if (definition.kind === 'vector') return vectorEntry(definition, paths[0]!);
  const several = severalEntries(definition, name, paths);
  return paths.length === 1
    ? singleEntry(definition, paths[0]!, several)
    : compoundEntry(definition, paths, several);
}

const maxDims = 4_096;

/** One entry for each record with a vector. Refuses BAD_DATA for one of other dimensions. */
function vectorEntry({ dims, storage }: IndexDefinition, path: Path): EntriesOf {
  const read = plainValue(path);
  return (row) => {
    const value = read(row);
    if (value === undefined || value === null) return noEntry();
    const isVector =
      Array.isArray(value) &&
      value.length === dims &&
      value.every((one) => typeof one === 'number');
    if (!isVector) {
      const found = Array.isArray(value) ? `a list of ${value.length}` : 'something else';
      throw refuse('BAD_DATA', `"${path.text}" must be a vector of ${dims} numbers, not ${found}.`);
    }
    const entries = { ...noEntry(), values: [vectorTag], payload: encodeVector(value, storage) };
    if (isInRange(value)) return entries;
    const problem = `"${path.text}" must be a vector of numbers within float32, up to 3.4e38.`;
    return { ...entries, problem };
  };
}

/** The form of a value in an index: with `ci`, text without its case. */
export function indexForm(
  value: Json | undefined,
  { collation }: IndexDefinition,
): Json | undefined {
  return collation === 'ci' && typeof value === 'string' ? foldText(value) : value;
}

function checkFields(fields: readonly string[], name: string): Path[] {
  const fail = (problem: string) => refuse('BAD_REQUEST', `The index "${name}" ${problem}.`);
  if (fields.length === 0) throw refuse('BAD_REQUEST', 'An index needs at least one field.');
  if (fields.length > maxIndexFields) throw fail(`has more than ${maxIndexFields} fields`);
  if (new Set(fields).size !== fields.length) throw fail('names a field twice');
  return fields.map((field) => {
    if (typeof field !== 'string') throw fail('has a field that is not a path');
    if (field === '$id' || field === '$seq') throw fail(`cannot have the field ${field}`);
    if (field.includes(',')) throw fail(`has a comma in the field "${field}"`);
    return parsePath(field, (problem) => fail(`has a field that ${problem}: "${field}"`));
  });
}

type EntriesOf = CompiledIndex['entriesOf'];

function oneEntry(encoder: EntryEncoder, constrained: boolean): IndexEntries {
  const values = [encoder.end()];
  return { values, multi: false, cut: encoder.cut, constrained, unique: constrained ? values : [] };
}

function noEntry(): IndexEntries {
  return { values: [], multi: false, cut: false, constrained: false, unique: [] };
}

function singleEntry(definition: IndexDefinition, path: Path, several: EntriesOf): EntriesOf {
  const read = plainValue(path);
  const encoder = new EntryEncoder(1);
  const { unique = false, sparse = false } = definition;
  return (row) => {
    const value = read(row);
    if (typeof value === 'symbol' || Array.isArray(value)) return several(row);
    if (value === undefined && sparse) return noEntry();
    encoder.begin().value(indexForm(value, definition));
    return oneEntry(encoder, unique && value !== undefined && value !== null);
  };
}

function compoundEntry(
  definition: IndexDefinition,
  paths: readonly Path[],
  several: EntriesOf,
): EntriesOf {
  const reads = paths.map(plainValue);
  const encoder = new EntryEncoder(paths.length);
  const { unique = false, sparse = false } = definition;
  return (row) => {
    encoder.begin();
    let present = false;
    let complete = true;
    for (const read of reads) {
      const value = read(row);
      if (typeof value === 'symbol' || Array.isArray(value)) return several(row);
      if (value !== undefined) present = true;
      if (value === undefined || value === null) complete = false;
      encoder.value(indexForm(value, definition));
    }
    if (sparse && !present) return noEntry();
    return oneEntry(encoder, unique && complete);
  };
}

/** What one field contributes: its values, and the elements of those that are arrays. */
interface Part {
  bytes: Uint8Array;
  /** May produce an entry that must be unique. */
  constrained: boolean;
}

/** The general case: every combination of the values of the fields. */
function severalEntries(
  definition: IndexDefinition,
  name: string,
  paths: readonly Path[],
): EntriesOf {
  const encoder = new EntryEncoder(paths.length);
  const tooMany = () =>
    refuse(
      'BAD_DATA',
      `The record has more than ${maxEntries} entries in the index "${name}": store fewer ` +
        `values in the arrays of these fields, or leave them out of the index.`,
    );

  const partsOf = (path: Path, row: Row, notes: { cut: boolean; present: boolean }): Part[] => {
    const parts = new Map<string, Part>();
    const add = (constrained: boolean) => {
      const bytes = encoder.end();
      if (encoder.cut) notes.cut = true;
      parts.set(bytes.toString('latin1'), { bytes, constrained });
      if (parts.size > maxEntries) throw tooMany();
    };
    forEachValue(path, row, (value: Json) => {
      encoder.begin().value(indexForm(value, definition));
      add(value !== null);
      if (!Array.isArray(value)) return;
      for (const item of value) {
        encoder.begin().element(indexForm(item, definition)!);
        add(false);
      }
    });
    if (parts.size > 0) notes.present = true;
    else {
      encoder.begin().value(undefined);
      add(false);
    }
    return [...parts.values()];
  };

  return (row) => {
    const notes = { cut: false, present: false };
    let entries: Part[] = [{ bytes: Buffer.alloc(0), constrained: definition.unique ?? false }];
    for (const path of paths) {
      const parts = partsOf(path, row, notes);
      if (entries.length * parts.length > maxEntries) throw tooMany();
      entries = entries.flatMap((entry) => parts.map((part) => joinParts(entry, part)));
    }
    if (definition.sparse && !notes.present) return noEntry();
    const unique = entries.filter((entry) => entry.constrained).map((entry) => entry.bytes);
    return {
      values: entries.map((entry) => entry.bytes),
      multi: true,
      cut: notes.cut,
      constrained: unique.length > 0,
      unique,
    };
  };
}

function joinParts(entry: Part, part: Part): Part {
  return {
    bytes: Buffer.concat([entry.bytes, part.bytes]),
    constrained: entry.constrained && part.constrained,
  };
}
