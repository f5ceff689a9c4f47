import { idBytes, idLength, prefixed } from '../format/keys.js';
import type { CompiledIndex } from '../format/entries.js';
import type { RecordImage } from '../format/record.js';
import { decodeVector, quantize, scaleOf, vectorTag } from '../format/vector-codes.js';
import { refuse, type Json } from '../value/documents.js';
import { compilePredicate } from '../value/predicate.js';
import type { CheckedFind, CheckedNear } from './query.js';
import type { QueryIndex } from './ranges.js';
import { overlaid, type QuerySource } from './source.js';
import { kernelBlock, VectorKernel } from './vector-kernel.js';

/*
 * Up to 10,000 vectors are compared one by one. Above, int8 codes of all vectors are compared in
 * memory, the nearest ones again with their numbers. The codes are read from the entries of the
 * index when a query needs them first, at most 64 MiB for each index, and belong to one commit:
 * records that changed since are compared one by one. See docs/decisions/0058-vector-codes.md.
 */
const maxExact = 10_000;
const maxCodeBytes = 64 * 2 ** 20;
/** Read again when more than one of this many has changed. */
const staleShare = 20;

export interface NearHit {
  readonly id: string;
  readonly score: number;
}

export interface NearResult {
  /** Best first. */
  readonly hits: NearHit[];
  readonly index: QueryIndex;
  readonly rows: number;
  readonly note: string;
}

/** The nearest vectors among the records that match the filter. */
export async function nearHits(
  source: QuerySource,
  { condition }: CheckedFind,
  near: CheckedNear,
  imageOf: (id: string) => RecordImage | undefined,
): Promise<NearResult> {
  const index = vectorIndex(source, near);
  const { metric = 'cosine' } = index.compiled.definition;
  const search = new NearSearch(source, index, near, similarityOf(metric, near.vector));
  const isMatch = compilePredicate(condition);
  search.test = (id) => {
    const image = imageOf(id);
    return image && isMatch(image) ? image : undefined;
  };
  const isExact = !codesAt(source, index) && (await search.all(maxExact));
  const codes = isExact ? undefined : await codesOf(source, index);
  if (codes) await search.nearestOf(codes);
  else if (!isExact) await search.all(Infinity);
  for (const image of overlaid(source)) search.compareIndexed(idOf(image));
  const note = codes
    ? 'Approximate nearest neighbours by int8 codes of all vectors, the best compared exactly: ' +
      'recall 0.99 or more.'
    : 'Exact nearest neighbours: recall 1.';
  return { hits: search.best.all(), index, rows: search.rows, note };
}

function vectorIndex({ collection }: QuerySource, { field, vector }: CheckedNear): QueryIndex {
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
  const { dims = 0 } = index.compiled.definition;
  if (vector.length === dims) return index;
  throw refuse('BAD_REQUEST', `near.vector has ${vector.length} dimensions, the index ${dims}.`);
}

const everyEntry = { start: Buffer.of(0), end: Buffer.of(0xff) };
const chunkRows = 1_024;

/** Receives the place of an id, and its stored vector: `undefined` where there is none. */
type VectorVisit = (key: Uint8Array, idAt: number, vector: Float32Array | undefined) => boolean;

/** Calls `visit` with every entry; true ends a chunk, after which `isOver` decides. */
async function eachVector(
  { view, slice }: QuerySource,
  { id, compiled }: QueryIndex,
  visit: VectorVisit,
  isOver: () => boolean = () => false,
): Promise<void> {
  const vector = new Float32Array(compiled.definition.dims ?? 0);
  for (let start: Uint8Array | undefined = everyEntry.start; start && !isOver();) {
    let rest: Uint8Array | undefined;
    let count = 0;
    view.entryRows(id, { start, end: everyEntry.end }, (key, _start, end, value, valueEnd) => {
      const idAt = end - idLength;
      const isFull = visit(key, idAt, decodeVector(value, valueEnd, vector) ? vector : undefined);
      if (!isFull && ++count < chunkRows) return false;
      rest = Buffer.concat([vectorTag, key.subarray(idAt, end), Buffer.of(0)]);
      return true;
    });
    start = rest;
    if (slice.spend(count * vector.byteLength)) await slice.pause();
  }
}

class NearSearch {
  readonly best: Best;
  rows = 0;
  test!: (id: string) => RecordImage | undefined;
  readonly #own: ReadonlySet<string>;
  readonly #vector: Float32Array;

  constructor(
    private readonly source: QuerySource,
    private readonly index: QueryIndex,
    private readonly near: CheckedNear,
    private readonly similarity: (vector: ArrayLike<number>) => number,
  ) {
    this.best = new Best(near.k);
    this.#vector = new Float32Array(near.vector.length);
    const ids = [...(source.overlay?.keys() ?? [])];
    this.#own = new Set(ids.map((id) => idBytes(id).toString('latin1')));
  }

  /** Compares the vector of a record, if it matches the filter. Returns whether it does. */
  compare(id: string): boolean {
    const image = this.test(id);
    const value = image && (this.#stored(id) ?? this.#inRecord(image));
    if (!value) return false;
    this.best.add(id, this.similarity(value));
    return true;
  }

  /**
   * The vector beside the entry, unless it is rounded to int8. Decoding 384 numbers of a record takes
   * ten times as long, and a query compares some seventy.
   */
  #stored(id: string): Float32Array | undefined {
    const { index, source } = this;
    const vector = this.#vector;
    if (index.compiled.definition.storage === 'int8' || this.#own.has(id)) return undefined;
    const key = Buffer.concat([vectorTag, Buffer.from(id, 'latin1')]);
    const row = source.view.get('index', prefixed(index.id, key));
    return row && decodeVector(row, row.length, vector) ? vector : undefined;
  }

  #inRecord(image: RecordImage): readonly number[] | undefined {
    const value = valueAt(image.top(this.near.field.split('.', 1)[0]!), this.near.field);
    return Array.isArray(value) ? (value as number[]) : undefined;
  }

  /** As `compare`, for a record that may not be in the index. */
  compareIndexed(id: string): void {
    const image = this.test(id)?.keep();
    if (image && this.index.compiled.entriesOf(image).values.length > 0) this.compare(id);
  }

  /** Compares all vectors; false: there are more than `max`, and the result is not complete. */
  async all(max: number): Promise<boolean> {
    let waiting: string[] = [];
    let count = 0;
    // Until the best are known every vector waits, and each that waits is read again. With a filter
    // that few match they stay unknown.
    let maxWaiting = enoughFor(this.near);
    const see: VectorVisit = (key, idAt, vector) => {
      count++;
      // The best of the stored vectors, which may be rounded, are compared exactly.
      const score = vector ? this.similarity(vector) : Infinity;
      if (!this.best.mayTake(score)) return false;
      const id = latin1(key, idAt);
      if (!this.#own.has(id)) waiting.push(id);
      return waiting.length >= maxWaiting;
    };
    const compareWaiting = () => {
      const ids = waiting;
      waiting = [];
      maxWaiting = Math.max(maxWaiting, Math.min(2 * maxWaiting, chunkRows));
      for (const id of ids) this.compare(id);
      return count > max;
    };
    await eachVector(this.source, this.index, see, compareWaiting);
    this.rows += count;
    if (compareWaiting()) this.best.clear();
    return count <= max;
  }

  /** Compares the nearest by their codes until enough of them match the filter. */
  async nearestOf(codes: Codes): Promise<void> {
    const { slice } = this.source;
    const scores = await codes.scores(this.near.vector, this.source);
    for (const [id, seq] of this.index.compiled.touched.ids) {
      if (seq <= codes.seq) continue;
      const name = idBytes(id).toString('latin1');
      const slot = codes.slots.get(name);
      if (slot !== undefined) scores[slot] = -Infinity;
      if (!this.#own.has(name)) this.compareIndexed(name);
    }
    for (const name of this.#own) {
      const slot = codes.slots.get(name);
      if (slot !== undefined) scores[slot] = -Infinity;
    }
    const enough = enoughFor(this.near);
    let matches = 0;
    for (let size = enough; matches < enough; size *= 4) {
      const slots = highest(scores, size);
      for (const slot of slots) {
        scores[slot] = -Infinity;
        if (this.compare(codes.ids[slot]!)) matches++;
        this.rows++;
        if (slice.spend(1_000)) await slice.pause();
      }
      if (slots.length < size) return;
    }
  }
}

/** Vectors to compare exactly, so that the best are among them. */
function enoughFor({ k }: CheckedNear): number {
  return 4 * k + 32;
}

/** The int8 codes of all vectors of an index at one commit. */
class Codes {
  readonly ids: string[] = [];
  readonly slots = new Map<string, number>();
  readonly #kernel: VectorKernel;
  #scales = new Float32Array(maxExact);
  /** Squares of the lengths, for l2. */
  #squares = new Float32Array(maxExact);

  constructor(
    readonly seq: number,
    private readonly metric: string,
    dims: number,
  ) {
    this.#kernel = new VectorKernel(dims);
  }

  add(id: string, vector: Float32Array): void {
    const slot = this.ids.length;
    if (slot === this.#scales.length) {
      this.#scales = doubled(this.#scales);
      this.#squares = doubled(this.#squares);
    }
    const scale = scaleOf(vector);
    let squares = 0;
    for (let i = 0; i < vector.length; i++) squares += vector[i]! ** 2;
    quantize(vector, scale, this.#kernel.at(slot));
    this.#squares[slot] = squares;
    const length = this.metric === 'cosine' ? Math.sqrt(squares) : 1;
    this.#scales[slot] = length === 0 ? 0 : scale / length;
    this.ids.push(id);
    this.slots.set(id, slot);
  }

  /** A score of every vector: higher is nearer. */
  async scores(vector: Float32Array, { slice }: QuerySource): Promise<Float32Array> {
    const count = this.ids.length;
    const scores = new Float32Array(count);
    const scale = scaleOf(vector);
    for (let from = 0; from < count; from += kernelBlock) {
      // Another query may have run since the last block.
      quantize(vector, scale, this.#kernel.query);
      const products = this.#kernel.products(from, Math.min(kernelBlock, count - from));
      for (let i = 0; i < products.length; i++) {
        const product = products[i]! * scale * this.#scales[from + i]!;
        scores[from + i] = this.metric === 'l2' ? 2 * product - this.#squares[from + i]! : product;
      }
      if (slice.spend(products.length * 100)) await slice.pause();
    }
    return scores;
  }
}

const codesOfIndex = new WeakMap<CompiledIndex, Codes>();
const reading = new WeakMap<CompiledIndex, Promise<void>>();

/** The codes in memory, if they are of the snapshot's commit or a little older. */
function codesAt({ view }: QuerySource, { compiled }: QueryIndex): Codes | undefined {
  const codes = codesOfIndex.get(compiled);
  if (!codes || codes.seq > view.seq || compiled.touched.since > codes.seq) return undefined;
  const max = Math.max(200, codes.ids.length / staleShare);
  let count = 0;
  for (const seq of compiled.touched.ids.values()) {
    if (seq > codes.seq && ++count > max) return undefined;
  }
  return codes;
}

/** Reads the codes; undefined: they do not fit, or the index changes too fast. */
async function codesOf(source: QuerySource, index: QueryIndex): Promise<Codes | undefined> {
  const { compiled } = index;
  // Queries that need the same codes wait for the first one.
  await reading.get(compiled);
  const known = codesAt(source, index);
  if (known) return known;
  let end = () => {};
  reading.set(compiled, new Promise((resolve) => (end = resolve)));
  try {
    const codes = await readCodes(source, index);
    const newer = codesOfIndex.get(compiled);
    if (codes && !(newer && newer.seq > codes.seq)) codesOfIndex.set(compiled, codes);
    return codes && compiled.touched.since <= codes.seq ? codes : undefined;
  } finally {
    reading.delete(compiled);
    end();
  }
}

async function readCodes(source: QuerySource, index: QueryIndex): Promise<Codes | undefined> {
  const { metric = 'cosine', dims = 0 } = index.compiled.definition;
  const most = Math.floor(maxCodeBytes / (dims + 64));
  const codes = new Codes(source.view.seq, metric, dims);
  let isComplete = true;
  const add: VectorVisit = (key, idAt, vector) => {
    isComplete &&= vector !== undefined && codes.ids.length < most;
    if (isComplete) codes.add(latin1(key, idAt), vector!);
    return false;
  };
  await eachVector(source, index, add, () => !isComplete);
  return isComplete ? codes : undefined;
}

function doubled(numbers: Float32Array): Float32Array<ArrayBuffer> {
  const more = new Float32Array(2 * numbers.length);
  more.set(numbers);
  return more;
}

/** The places of the `size` highest scores, highest first. */
function highest(scores: Float32Array, size: number): number[] {
  let slots: number[] = [];
  let least = -Infinity;
  const cut = () => {
    slots = slots.sort((a, b) => scores[b]! - scores[a]! || a - b).slice(0, size);
    if (slots.length === size) least = scores[slots.at(-1)!]!;
  };
  for (let i = 0; i < scores.length; i++) {
    if (!(scores[i]! > least)) continue;
    slots.push(i);
    if (slots.length >= 4 * size) cut();
  }
  cut();
  return slots;
}

function idOf(image: RecordImage): string {
  return idBytes(image.id).toString('latin1');
}

function latin1(bytes: Uint8Array, at: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + at, idLength).toString('latin1');
}

function valueAt(top: Json | undefined, field: string): Json | undefined {
  let value = top;
  for (const name of field.split('.').slice(1)) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    value = value[name];
  }
  return value;
}

/** How near a vector is: higher is nearer. */
function similarityOf(metric: string, wanted: Float32Array): (vector: ArrayLike<number>) => number {
  const { length } = wanted;
  if (metric === 'dot') {
    return (vector) => {
      let sum = 0;
      for (let i = 0; i < length; i++) sum += wanted[i]! * vector[i]!;
      return sum;
    };
  }
  if (metric === 'l2') {
    return (vector) => {
      let sum = 0;
      for (let i = 0; i < length; i++) sum += (wanted[i]! - vector[i]!) ** 2;
      return 1 / (1 + Math.sqrt(sum));
    };
  }
  const norm = Math.hypot(...wanted);
  return (vector) => {
    let dot = 0;
    let squares = 0;
    for (let i = 0; i < length; i++) {
      const one = vector[i]!;
      dot += wanted[i]! * one;
      squares += one * one;
    }
    const lengths = norm * Math.sqrt(squares);
    return lengths === 0 ? 0 : dot / lengths;
  };
}

export function byScore(a: NearHit, b: NearHit): number {
  return b.score - a.score || (a.id < b.id ? -1 : 1);
}

/** The best of any number of hits. */
class Best {
  #all: NearHit[] = [];
  #worst = -Infinity;

  constructor(private readonly size: number) {}

  add(id: string, score: number): void {
    if (this.#all.length >= 2 * this.size && score < this.#worst) return;
    this.#all.push({ id, score });
    if (this.#all.length < 4 * this.size) return;
    this.#all = this.#all.sort(byScore).slice(0, 2 * this.size);
    this.#worst = this.#all.at(-1)!.score;
  }

  /** Whether a vector of about this score may be among the best. */
  mayTake(score: number): boolean {
    return this.#worst === -Infinity || score >= this.#worst - Math.abs(this.#worst) * 0.05;
  }

  clear(): void {
    this.#all = [];
    this.#worst = -Infinity;
  }

  all(): NearHit[] {
    return this.#all.sort(byScore).slice(0, this.size);
  }
}
