import { type Json, refuse } from '../value/documents.js';
import { idLength, readId } from '../format/keys.js';
import type { Condition, FieldTest } from '../value/filter.js';
import { type IndexAccess, type Plan, planQuery } from './plan.js';
import { compilePredicate } from '../value/predicate.js';
import type { CheckedFind, CheckedSearch } from './query.js';
import { analyzerOf } from '../format/search-entries.js';
import { search, searchIndex } from './search.js';
import { highlightsOf } from './search-text.js';
import { visitAll, type QuerySource, reportOf, type PlanReport } from './source.js';
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
  if (query.search) return yield* findRanked(source, query, query.search, sink);
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
  const page = new Page(source, query, sink);
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

const maxHits = 1_000;
const batchHits = 100;

/** The hits of a search that match the filter, best first. */
async function* findRanked<Records>(
  source: QuerySource,
  query: CheckedFind,
  wanted: CheckedSearch,
  sink: RecordSink<Records>,
): AsyncGenerator<FindBatch<Records>, void, void> {
  const { slice, view, collection, now, overlay } = source;
  slice.enter();
  const index = searchIndex(source, wanted);
  const { ranked, matches, terms, rows } = await search(source, index, wanted);
  const { definition, paths } = index.compiled;
  const isMatch = compilePredicate(query.condition);
  const analyzer = analyzerOf(definition.language);
  const bytes = Buffer.alloc(idLength);
  const last = query.countOnly ? maxHits : Math.min(query.skip + query.limit, maxHits);
  let [found, returned, read] = [0, 0, 0];
  for (const { id, score } of ranked) {
    if (found >= last) break;
    bytes.write(id, 'latin1');
    const own = overlay?.get(readId(bytes, 0));
    const image = own ?? view.recordAt(collection.id, bytes, 0);
    read++;
    if (image && !image.isExpired(now) && isMatch(image) && matches(image)) {
      if (++found > query.skip && !query.countOnly) {
        const copy = image.keep();
        const highlights =
          wanted.highlight && highlightsOf(copy, paths, terms, analyzer, wanted.fuzzy);
        sink.add(copy, { score, ...(highlights && { highlights }) });
        if (++returned % batchHits === 0) {
          slice.leave();
          yield { records: sink.take() };
          slice.enter();
        }
      }
    }
    if (slice.spend(image?.end ?? 0)) await slice.pause();
  }
  const plan: PlanReport = {
    index: index.compiled.name,
    rowsScanned: rows + read,
    rowsReturned: returned,
    fullScan: false,
    sortedInMemory: true,
    elapsedMs: slice.elapsedMs,
    ...(index.cut && { note: cutNote }),
  };
  const count = query.countOnly ? found : undefined;
  yield { records: sink.take(), end: { nextCursor: '', plan, count } };
}

const cutNote = 'A record with more than 1 MiB of text is indexed by its first 1 MiB.';

function indexRequired(): Error {
  return refuse(
    'INDEX_REQUIRED',
    'No index serves this query: declare one on a field of its filter or order, or allow a full ' +
      'scan.',
  );
}
