import { analyzerOf } from '../format/search-entries.js';
import { idLength, readId } from '../format/keys.js';
import type { RecordImage } from '../format/record.js';
import { compilePredicate } from '../value/predicate.js';
import type { Hit } from './page.js';
import type { CheckedFind, CheckedSearch } from './query.js';
import type { QueryIndex } from './ranges.js';
import { search, searchIndex } from './search.js';
import { highlightsOf, type Highlights } from './search-text.js';
import type { PlanReport, QuerySource } from './source.js';
import { byScore, nearHits } from './vectors.js';

/** A search has at most this many hits. */
const maxHits = 1_000;
/** Records that a search retains from its filter to its result. */
const maxRetainedBytes = 1024 * 1024;
/** The constant of reciprocal rank fusion. */
const rankConstant = 60;

interface RankedHit {
  readonly id: string;
  readonly score: number;
  /** The record, if there was room for it. */
  readonly image?: RecordImage | undefined;
}

interface RankedHits {
  /** Best first, all matching the filter. */
  readonly hits: RankedHit[];
  readonly index: QueryIndex;
  readonly rows: number;
  readonly highlights?: (image: RecordImage) => Highlights;
  readonly note?: string;
}

export interface RankedResult {
  /** Best first: the image is valid until the next one is taken. */
  readonly hits: Iterable<{ image: RecordImage; hit: Hit }>;
  readonly count: number;
  readonly plan: Omit<PlanReport, 'rowsReturned'>;
}

/** The records that a search or a vector finds, or both by reciprocal rank. */
export async function rankedRecords(
  source: QuerySource,
  query: CheckedFind,
): Promise<RankedResult> {
  const { slice } = source;
  const found: RankedHits[] = [];
  if (query.search) found.push(await searchHits(source, query, query.search));
  if (query.near) {
    found.push(await nearHits(source, query, query.near, (id) => imageOf(source, id)));
  }
  const hits = found.length === 1 ? found[0]!.hits : fused(found.map((each) => each.hits));
  const highlights = found.find((each) => each.highlights)?.highlights;
  function* records() {
    for (const { id, score, image: known } of hits.slice(query.skip, query.skip + query.limit)) {
      const image = known ?? imageOf(source, id)?.keep();
      if (image)
        yield { image, hit: { score, ...(highlights && { highlights: highlights(image) }) } };
    }
  }
  const notes = found.map(noteOf).filter((note) => note !== '');
  const plan = {
    index: found.map(({ index }) => index.compiled.name).join(' and '),
    rowsScanned: found.reduce((sum, { rows }) => sum + rows, 0),
    fullScan: false,
    sortedInMemory: true,
    elapsedMs: slice.elapsedMs,
    ...(notes.length > 0 && { note: notes.join(' ') }),
  };
  return { hits: records(), count: hits.length, plan };
}

function noteOf({ index, note }: RankedHits): string {
  if (note !== undefined) return note;
  return index.cut ? 'A record with more than 1 MiB of text is indexed by its first 1 MiB.' : '';
}

/** Each list gives 1 / (60 + rank) to its records. */
function fused(lists: readonly (readonly RankedHit[])[]): RankedHit[] {
  const scores = new Map<string, number>();
  for (const list of lists) {
    list.forEach(({ id }, i) => {
      scores.set(id, (scores.get(id) ?? 0) + 1 / (rankConstant + i + 1));
    });
  }
  const all = [...scores].map(([id, score]) => ({ id, score }));
  return all.sort(byScore).slice(0, maxHits);
}

const idOf = Buffer.alloc(idLength);

/** The record of 16 bytes of an id, as latin1; also one of the transaction's own. */
function imageOf({ view, collection, overlay, now }: QuerySource, id: string) {
  idOf.write(id, 'latin1');
  const own = overlay?.get(readId(idOf, 0));
  const image = own ?? (own === null ? undefined : view.recordAt(collection.id, idOf, 0));
  return image && !image.isExpired(now) ? image : undefined;
}

async function searchHits(
  source: QuerySource,
  { condition, near, countOnly, skip, limit }: CheckedFind,
  wanted: CheckedSearch,
): Promise<RankedHits> {
  const { slice } = source;
  const most = near || countOnly ? maxHits : Math.min(maxHits, skip + limit);
  const index = searchIndex(source, wanted);
  const { ranked, matches, terms, searched, rows, release } = await search(source, index, wanted);
  const isMatch = compilePredicate(condition);
  const hits: RankedHit[] = [];
  let read = 0;
  let room = near || countOnly ? 0 : maxRetainedBytes;
  for (const hit of ranked) {
    if (hits.length >= most) break;
    const image = imageOf(source, hit.id);
    read++;
    if (image && isMatch(image) && matches(image)) {
      room -= image.end;
      hits.push(room < 0 ? hit : { ...hit, image: image.keep() });
    }
    if (slice.spend(image?.end ?? 0)) await slice.pause();
  }
  release();
  const analyzer = analyzerOf(index.compiled.definition.language);
  return {
    hits,
    index,
    rows: rows + read,
    ...(wanted.highlight && {
      highlights: (image) => highlightsOf(image, searched, terms, analyzer, wanted.fuzzy),
    }),
  };
}
