import { type Json, type JsonObject, refuse } from '../value/documents.js';
import type { RecordImage } from '../format/record.js';
import { openLookups } from './lookup.js';
import { idLength, readId } from '../format/keys.js';
import type { Condition, FieldTest } from '../value/filter.js';
import { type IndexAccess, type Plan, planQuery } from './plan.js';
import { compilePredicate } from '../value/predicate.js';
import { rowOf, type CheckedFind } from './query.js';
import { rankedRecords } from './ranked.js';
import { reportOf, sourceWith, visitAll, type PlanReport, type QuerySource } from './source.js';
import { Page, RecordList, type FoundRecord, type RecordSink } from './page.js';

interface Counted {
  count: number;
  /** Rows read, from an index or the collection. */
  rows: number;
}

/** With more expired records than this, every record is read. */
const maxExpired = 1_000;
/** Longer texts may be cut in an index. */
const maxTextLength = 64;
const zero = Buffer.from([0]);
const rangeOps = ['gt', 'gte', 'lt', 'lte', 'between'];

/** Counts matching records. Reads only index entries where they are sufficient. */
async function countMatches(
  source: QuerySource,
  { condition }: Pick<CheckedFind, 'condition'>,
  plan: Plan,
): Promise<Counted> {
  const { view, collection, now, overlay } = source;
  const access = overlay?.size ? undefined : coveringAccess(condition, plan);
  const expired = access && view.expired(collection.id, now, maxExpired);
  if (access && expired) return countEntries(source, access, new Set(expired));
  const matches = compilePredicate(condition);
  let count = 0;
  const rows = await visitAll(source, plan, (image) => {
    if (matches(image)) count++;
    return false;
  });
  return { count, rows };
}

/** The access path of the plan, if it has exactly one entry for each matching record. */
function coveringAccess(condition: Condition, { access }: Plan): IndexAccess | undefined {
  if (access.kind !== 'index' || access.index.multi || access.index.cut) return undefined;
  const { collation, where } = access.index.compiled.definition;
  if (collation !== undefined || where !== undefined) return undefined;
  const tests = testsOf(condition);
  if (!tests) return undefined;
  const fields = access.index.compiled.paths.slice(0, tests.length).map(({ text }) => text);
  const isCovered = fields.every((field, i) => {
    const [test, another] = tests.filter((each) => each.field.text === field);
    return test && !another && isExact(test, i === tests.length - 1);
  });
  return isCovered && fields.length === tests.length ? access : undefined;
}

function testsOf(condition: Condition): readonly FieldTest[] | undefined {
  if (condition.kind === 'test') return [condition];
  if (condition.kind !== 'and') return undefined;
  const tests = condition.parts.filter((part) => part.kind === 'test');
  return tests.length === condition.parts.length ? tests : undefined;
}

/** Whether the ranges of an index contain exactly the records that pass the test. */
function isExact({ op, value }: FieldTest, isLast: boolean): boolean {
  if (op === 'eq') return isPlain(value);
  if (op === 'in') return (value as Json[]).every(isPlain);
  if (!isLast || !rangeOps.includes(op)) return false;
  return op === 'between' ? (value as Json[]).every(isPlain) : isPlain(value);
}

/** Null is excluded: it sorts next to missing fields. */
function isPlain(value: Json): boolean {
  if (typeof value === 'string') return value.length <= maxTextLength;
  return typeof value === 'number' || typeof value === 'boolean';
}

async function countEntries(
  { view, slice }: QuerySource,
  { index, ranges }: IndexAccess,
  expired: ReadonlySet<string>,
): Promise<Counted> {
  let count = 0;
  let rows = 0;
  for (const { start, end } of ranges) {
    for (let from: Uint8Array | undefined = start; from;) {
      let rest: Uint8Array | undefined;
      view.entries(index.id, { start: from, end }, (bytes, valuesAt, idAt) => {
        rows++;
        if (expired.size === 0 || !expired.has(readId(bytes, idAt))) count++;
        if (!slice.spend(0)) return false;
        rest = Buffer.concat([bytes.subarray(valuesAt, idAt + idLength), zero]);
        return true;
      });
      from = rest;
      if (from) await slice.pause();
    }
  }
  return { count, rows };
}

/** At most 256 records or 256 KiB; the last one has `end`, and may have no records. */
export interface FindBatch<Records = readonly FoundRecord[]> {
  readonly records: Records;
  readonly end?: FindEnd | undefined;
}

export interface FindEnd {
  /** "" when there are no more records. */
  readonly nextCursor: string;
  readonly plan: PlanReport;
  /** Only for `countOnly`. */
  readonly count?: number | undefined;
}

/** Finds records batch by batch, at the pace of the caller. */
export function find(
  source: QuerySource,
  query: CheckedFind,
): AsyncGenerator<FindBatch, void, void> {
  return findInto(source, query, new RecordList(query.project));
}

/** As `find`, with batches that the sink builds from the records. */
export async function* findInto<Records>(
  source: QuerySource,
  query: CheckedFind,
  sink: RecordSink<Records>,
): AsyncGenerator<FindBatch<Records>, void, void> {
  if (query.search || query.near) return yield* findRanked(source, query, sink);
  const { slice } = source;
  slice.enter();
  const plan = planQuery(query.condition, query.order, source.collection.indexes);
  if (plan.access.kind === 'scan' && !query.allowFullScan) throw indexRequired();
  if (query.countOnly) {
    const { count, rows } = await countMatches(source, query, plan);
    const report = reportOf(plan, rows, 0, slice);
    yield { records: sink.take(), end: { nextCursor: '', plan: report, count } };
    return;
  }
  const page = new Page(sourceWith(source, query.lookups), query, sink, joinOf(source, query));
  try {
    const walk = await page.open(plan);
    for (let ended = false; !ended;) {
      ended = walk.run(page.visit) || page.isFull;
      if (ended) page.finish();
      for (let records = page.takeBatch(); records; records = page.takeBatch()) {
        slice.leave();
        yield { records };
        slice.enter();
      }
      if (!ended && slice.due()) await slice.pause();
    }
    const records = page.takeRest();
    const report = reportOf(plan, walk.rows, page.returned, slice);
    yield { records, end: { nextCursor: page.nextCursor(), plan: report } };
  } finally {
    page.close();
  }
}

/** The document with what lookups find, projected; undefined without lookups. */
function joinOf(
  source: QuerySource,
  { lookups, project }: CheckedFind,
): ((image: RecordImage) => JsonObject) | undefined {
  const join = openLookups(source, lookups);
  if (!join) return undefined;
  return (image) => {
    // Reading other records would overwrite one that is read in place.
    const data = join(image.keep());
    if (!project) return data;
    // What a lookup found is wanted, whichever fields of the record are.
    const parts = project(rowOf(data));
    for (const { as } of lookups) if (!Object.hasOwn(parts, as)) parts[as] = data[as]!;
    return parts;
  };
}

const batchHits = 100;

/** The hits of a search or of a vector that match the filter, best first. */
async function* findRanked<Records>(
  source: QuerySource,
  query: CheckedFind,
  sink: RecordSink<Records>,
): AsyncGenerator<FindBatch<Records>, void, void> {
  const { slice } = source;
  slice.enter();
  const join = joinOf(source, query);
  const { hits, count, plan } = await rankedRecords(source, query);
  let rowsReturned = 0;
  if (!query.countOnly) {
    for (const { image, hit } of hits) {
      sink.add(image, hit, join?.(image));
      if (++rowsReturned % batchHits !== 0) continue;
      slice.leave();
      yield { records: sink.take() };
      slice.enter();
    }
  }
  const end = { nextCursor: '', plan: { ...plan, rowsReturned } };
  yield { records: sink.take(), end: query.countOnly ? { ...end, count } : end };
}

function indexRequired(): Error {
  return refuse(
    'INDEX_REQUIRED',
    'No index serves this query: declare one on a field of its filter or order, or allow a full ' +
      'scan.',
  );
}
