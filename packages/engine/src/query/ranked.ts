import { analyzerOf } from '../format/search-entries.js';
import { idBytes, idLength, readId } from '../format/keys.js';
import type { RecordImage } from '../format/record.js';
import { refuse, type Json } from '../value/documents.js';
import { compilePredicate } from '../value/predicate.js';
import type { Hit } from './page.js';
import type { CheckedFind, CheckedNear, CheckedSearch } from './query.js';
import type { QueryIndex } from './ranges.js';
import { search, searchIndex } from './search.js';
import { highlightsOf, type Highlights } from './search-text.js';
import { overlaid, type PlanReport, type QuerySource } from './source.js';

/** A search has at most this many hits. */
const maxHits = 1_000;
/** The constant of reciprocal rank fusion. */
const rankConstant = 60;

interface RankedHits {
  /** Best first, all matching the filter. */
  readonly hits: { readonly id: string; readonly score: number }[];
  readonly index: QueryIndex;
  readonly rows: number;
  readonly highlights?: (image: RecordImage) => Highlights;
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
  if (query.near) found.push(await nearHits(source, query, query.near));
  const hits = found.length === 1 ? found[0]!.hits : fused(found.map((each) => each.hits));
  const highlights = found.find((each) => each.highlights)?.highlights;
  function* records() {
    for (const { id, score } of hits.slice(query.skip, query.skip + query.limit)) {
      const image = imageOf(source, id)?.keep();
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

function noteOf({ index }: RankedHits): string {
  if (index.compiled.definition.kind === 'vector') return 'Exact nearest neighbours: recall 1.';
  return index.cut ? 'A record with more than 1 MiB of text is indexed by its first 1 MiB.' : '';
}

/** Each list gives 1 / (60 + rank) to its records. */
function fused(lists: readonly RankedHits['hits'][]): RankedHits['hits'] {
  const scores = new Map<string, number>();
  for (const list of lists) {
    list.forEach(({ id }, i) => {
      scores.set(id, (scores.get(id) ?? 0) + 1 / (rankConstant + i + 1));
    });
  }
  const all = [...scores].map(([id, score]) => ({ id, score }));
  return all.sort(byScore).slice(0, maxHits);
}

function byScore(a: { id: string; score: number }, b: { id: string; score: number }): number {
  return b.score - a.score || (a.id < b.id ? -1 : 1);
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
  { condition }: CheckedFind,
  wanted: CheckedSearch,
): Promise<RankedHits> {
  const { slice } = source;
  const index = searchIndex(source, wanted);
  const { ranked, matches, terms, rows } = await search(source, index, wanted);
  const isMatch = compilePredicate(condition);
  const hits: RankedHits['hits'] = [];
  let read = 0;
  for (const hit of ranked) {
    if (hits.length >= maxHits) break;
    const image = imageOf(source, hit.id);
    read++;
    if (image && isMatch(image) && matches(image)) hits.push(hit);
    if (slice.spend(image?.end ?? 0)) await slice.pause();
  }
  const { definition, paths } = index.compiled;
  const analyzer = analyzerOf(definition.language);
  return {
    hits,
    index,
    rows: rows + read,
    ...(wanted.highlight && {
      highlights: (image) => highlightsOf(image, paths, terms, analyzer, wanted.fuzzy),
    }),
  };
}

/** The nearest vectors among the records that match the filter, by comparing each. */
async function nearHits(
  source: QuerySource,
  { condition }: CheckedFind,
  { field, vector, k }: CheckedNear,
): Promise<RankedHits> {
  const { view, slice, collection, overlay } = source;
  const index = collection.indexes.find(
    ({ state, compiled: { definition } }) =>
      state === 'ready' && definition.kind === 'vector' && definition.fields[0] === field,
  );
  if (!index) {
    throw refuse(
      'INDEX_REQUIRED',
      `"${collection.name}" has no vector index on "${field}" that is ready: create one with ` +
        '{ vector: "embedding", dims: 384, metric: "cosine" }.',
    );
  }
  const { dims = 0, metric = 'cosine' } = index.compiled.definition;
  if (vector.length !== dims) {
    throw refuse('BAD_REQUEST', `near.vector has ${vector.length} dimensions, the index ${dims}.`);
  }
  const similarity = similarityOf(metric, vector);
  const isMatch = compilePredicate(condition);
  const [name = ''] = field.split('.');
  const best = new Best(k);
  let rows = 0;
  const compare = (image: RecordImage, id: string) => {
    if (image.isExpired(source.now) || !isMatch(image)) return;
    const value = valueAt(image.top(name), field);
    if (Array.isArray(value)) best.add(id, similarity(value as number[]));
  };
  const end = Buffer.of(0xff);
  for (let from: Uint8Array | undefined = Buffer.of(0); from;) {
    let rest: Uint8Array | undefined;
    const ids: Buffer[] = [];
    view.entries(index.id, { start: from, end }, (bytes, start, idAt) => {
      ids.push(Buffer.from(bytes.subarray(idAt, idAt + idLength)));
      if (ids.length < chunkLength) return false;
      rest = Buffer.concat([bytes.subarray(start, idAt + idLength), Buffer.of(0)]);
      return true;
    });
    for (const id of ids) {
      rows++;
      if (overlay?.has(readId(id, 0))) continue;
      const image = view.recordAt(collection.id, id, 0);
      if (image) compare(image, id.toString('latin1'));
      if (slice.spend(image?.end ?? 0)) await slice.pause();
    }
    from = rest;
  }
  for (const image of overlaid(source)) {
    const isIn = index.compiled.entriesOf(image).values.length > 0;
    if (isIn) compare(image, idBytes(image.id).toString('latin1'));
  }
  return { hits: best.all(), index, rows };
}

const chunkLength = 256;

function valueAt(top: Json | undefined, field: string): Json | undefined {
  let value = top;
  for (const name of field.split('.').slice(1)) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    value = value[name];
  }
  return value;
}

/** How near a vector is: higher is nearer. */
function similarityOf(metric: string, wanted: Float32Array): (vector: readonly number[]) => number {
  const { length } = wanted;
  const dot = (vector: readonly number[]) => {
    let sum = 0;
    for (let i = 0; i < length; i++) sum += wanted[i]! * vector[i]!;
    return sum;
  };
  if (metric === 'dot') return dot;
  if (metric === 'l2') {
    return (vector) => {
      let sum = 0;
      for (let i = 0; i < length; i++) sum += (wanted[i]! - vector[i]!) ** 2;
      return 1 / (1 + Math.sqrt(sum));
    };
  }
  const norm = Math.hypot(...wanted);
  return (vector) => {
    let squares = 0;
    for (let i = 0; i < length; i++) squares += vector[i]! ** 2;
    const lengths = norm * Math.sqrt(squares);
    return lengths === 0 ? 0 : dot(vector) / lengths;
  };
}

/** The best of any number of hits. */
class Best {
  #all: RankedHits['hits'] = [];
  #worst = -Infinity;

  constructor(private readonly size: number) {}

  add(id: string, score: number): void {
    if (this.#all.length >= 2 * this.size && score < this.#worst) return;
    this.#all.push({ id, score });
    if (this.#all.length < 4 * this.size) return;
    this.#all = this.#all.sort(byScore).slice(0, 2 * this.size);
    this.#worst = this.#all.at(-1)!.score;
  }

  all(): RankedHits['hits'] {
    return this.#all.sort(byScore).slice(0, this.size);
  }
}
