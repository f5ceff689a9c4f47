import type { RecordImage } from '../format/record.js';
import { idBytes, readId } from '../format/keys.js';
import { refuse, type Json, type JsonObject } from '../value/documents.js';
import type { FieldTest } from '../value/filter.js';
import { forEachValue, type Path, type Row } from '../value/path.js';
import { compilePredicate } from '../value/predicate.js';
import { IndexWalk } from './index-walk.js';
import { indexRanges } from './ranges.js';
import type { CheckedLookup } from './query.js';
import { walkSource, type ForeignCollection, type QuerySource } from './source.js';

/** A larger collection needs an index on the field. */
const maxUnindexed = 1_000;
const noBytes = Buffer.alloc(0);

/** The document of a record with what the lookups find. Reads at once, in the query's snapshot. */
export type Join = (row: Row) => JsonObject;

/** Opens the lookups of a query; undefined without any. Refuses INDEX_REQUIRED. */
export function openLookups(
  source: QuerySource,
  lookups: readonly CheckedLookup[],
): Join | undefined {
  if (lookups.length === 0) return undefined;
  const finders = lookups.map((lookup) => {
    const foreign = source.foreign?.(lookup.from);
    return { lookup, find: foreign ? finderOf(source, foreign, lookup) : () => [] };
  });
  return (row) => {
    const data = { ...row.data };
    for (const { lookup, find } of finders) {
      const found = new Map<string, Json>();
      forEachValue(lookup.local, row, (value) => {
        for (const one of Array.isArray(value) ? value : [value]) {
          if (found.size >= lookup.limit) return;
          for (const image of find(one)) {
            found.set(image.id, image.data);
            if (found.size >= lookup.limit) return;
          }
        }
      });
      data[lookup.as] = [...found.values()];
    }
    return data;
  };
}

type Finder = (value: Json) => Iterable<RecordImage>;

/** The field is the value, or an array with it. */
function testsOf(field: Path, value: Json): FieldTest[] {
  return [
    { kind: 'test', field, op: 'eq', value },
    { kind: 'test', field, op: 'all', value: [value] },
  ];
}

function matcher(field: Path, value: Json) {
  return compilePredicate({ kind: 'or', parts: testsOf(field, value) });
}

function finderOf(
  source: QuerySource,
  foreign: ForeignCollection,
  { foreign: path, from }: CheckedLookup,
): Finder {
  const { view, now } = source;
  const { id: collection, overlay } = foreign;
  const isLive = (image: RecordImage | undefined): image is RecordImage =>
    image !== undefined && !image.isExpired(now);
  const stored = (id: string) => (overlay?.has(id) ? undefined : view.record(collection, id));
  const own = [...(overlay?.values() ?? [])].filter((image) => image !== null);
  const withOwn = (find: Finder): Finder =>
    function* all(value) {
      yield* find(value);
      const matches = matcher(path, value);
      for (const image of own) if (isLive(image) && matches(image)) yield image;
    };
  if (path.text === '$id' || path.text === '$key') {
    return withOwn(function* byName(value) {
      if (typeof value !== 'string') return;
      const id = path.text === '$id' ? storedId(value) : view.idOfKey(collection, value);
      const image = id === undefined ? undefined : stored(id);
      if (isLive(image)) yield image;
    });
  }
  const index = foreign.indexes.find(
    ({ state, compiled }) =>
      state === 'ready' &&
      compiled.definition.kind === undefined &&
      compiled.definition.where === undefined &&
      compiled.definition.collation === undefined &&
      compiled.paths[0]!.text === path.text,
  );
  if (!index) return withOwn(scanned(source, foreign, path, from));
  const entries = { ...walkSource(source), collection };
  return withOwn(function* byIndex(value) {
    const matches = matcher(path, value);
    const ranges = testsOf(path, value).flatMap((test) => indexRanges(index, [test])?.ranges ?? []);
    const access = { kind: 'index', index, ranges, constant: 0, constantValues: noBytes } as const;
    const walk = new IndexWalk(entries, access);
    for (let ids = walk.nextIds(); ids; ids = walk.nextIds()) {
      for (const id of ids) {
        const image = stored(id);
        // Entries of long values may be those of others, and some records may have expired.
        if (isLive(image) && matches(image)) yield image;
      }
    }
  });
}

function storedId(text: string): string | undefined {
  return /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(text) && readId(idBytes(text), 0) === text
    ? text
    : undefined;
}

/** Without an index: all records of a small collection, read once. */
function scanned(
  { view, now }: QuerySource,
  { id, overlay }: ForeignCollection,
  path: Path,
  from: string,
): Finder {
  const images: RecordImage[] = [];
  for (const image of view.scan(id, {}, () => true)) {
    if (images.length >= maxUnindexed) {
      throw refuse(
        'INDEX_REQUIRED',
        `A lookup from "${from}" needs an index on "${path.text}": the collection has more than ` +
          `${maxUnindexed} records.`,
      );
    }
    images.push(image.keep());
  }
  const live = images.filter((image) => !image.isExpired(now) && !overlay?.has(image.id));
  return (value) => {
    const matches = matcher(path, value);
    return live.filter((image) => matches(image));
  };
}

/** A record whose data has what the lookups found. */
export function joinedRow(row: Row, data: JsonObject): Row {
  const { id, key, rev, seq, createdAt, updatedAt, expiresAt } = row;
  const top = (field: string) => (Object.hasOwn(data, field) ? data[field] : undefined);
  return { id, key, rev, seq, createdAt, updatedAt, expiresAt, data, top };
}
