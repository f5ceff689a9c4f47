import { refuse } from '../value/refusal.js';
import { countMatches } from './count.js';
import { Page } from './page.js';
import { planQuery } from './plan.js';
import type { CheckedFind } from './query.js';
import { RecordList, type FoundRecord, type RecordSink } from './record-sink.js';
import { reportOf, type PlanReport, type QuerySource } from './source.js';

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

function indexRequired(): Error {
  return refuse(
    'INDEX_REQUIRED',
    'No index serves this query: declare one on a field of its filter or order, or allow a full ' +
      'scan.',
  );
}
