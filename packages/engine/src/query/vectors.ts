import { idBytes, idLength, prefixed } from '../format/keys.js';
import type { CompiledIndex } from '../format/entries.js';
import type { RecordImage } from '../format/record.js';
import { decodeVector, isInRange, quantize, scaleOf, vectorTag } from '../format/vector-codes.js';
import { refuse, type Json } from '../value/documents.js';
import { compilePredicate } from '../value/predicate.js';
import type { CheckedFind, CheckedNear } from './query.js';
import type { QueryIndex } from './ranges.js';
import { overlaid, type QuerySource } from './source.js';
import { kernelBlock, VectorKernel } from './vector-kernel.js';

/*
 * Up to 10,000 vectors are compared one by one. Above, int8 codes of all vectors are compared in
 * memory, and with their numbers all that may be among the nearest by the error of their codes. The
 * codes are read from the entries of the index when a query needs them first, at most 64 MiB for
 * each index, and belong to one commit: records that changed since are compared one by one. See
 * docs/decisions/0058-vector-codes.md.
 */
const maxExact = 10_000;
const maxCodeBytes = 64 * 2 ** 20;
/** Read again when more than one of this many has changed. */
const staleShare = 20;
/** When the codes leave more than one of this many, all vectors are read in their order instead. */
const scanShare = 8;

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
  const search = new NearSearch(source, index, near, metric);
  const isMatch = compilePredicate(condition);
  search.test = (id) => {
    const image = imageOf(id);
    return image && isMatch(image) ? image : undefined;
  };
  const isExact = !codesAt(source, index) && (await search.all(maxExact));
  const codes = isExact ? undefined : await codesOf(source, index);
  const isByCodes = codes !== undefined && (await search.nearestOf(codes));
  if (!isExact && !isByCodes) await search.all(Infinity);
  for (const image of overlaid(source)) search.compareIndexed(idOf(image));
  const note = isByCodes
    ? 'Exact nearest neighbours by int8 codes of all vectors, the best compared exactly: recall 1.'
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

/**
 * Receives the place of an id, its stored vector (`undefined` where there is none), and how far that
 * may be from the vector of the record.
 */
type VectorVisit = (
  key: Uint8Array,
  idAt: number,
  vector: Float32Array | undefined,
  error: number,
) => boolean;

/** Calls `visit` with every entry; true ends a chunk, after which `isOver` decides. */
async function eachVector(
  { view, slice }: QuerySource,
  { id, compiled }: QueryIndex,
  visit: VectorVisit,
  isOver: () => boolean = () => false,
): Promise<void> {
  const { dims = 0, storage } = compiled.definition;
  const vector = new Float32Array(dims);
  // Half of a scale in each dimension, and a little more for the last digits.
  const errorOfScale = storage === 'int8' ? 0.5001 * Math.sqrt(dims) : 0;
  for (let start: Uint8Array | undefined = everyEntry.start; start && !isOver();) {
    let rest: Uint8Array | undefined;
    let count = 0;
    view.entryRows(id, { start, end: everyEntry.end }, (key, _start, end, value, valueEnd) => {
      const idAt = end - idLength;
      const found = decodeVector(value, valueEnd, vector) ? vector : undefined;
      const error = found && errorOfScale > 0 ? value.readFloatLE(0) * errorOfScale : 0;
      const isFull = visit(key, idAt, found, error);
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
  readonly #similarity: Similarity;

  constructor(
    private readonly source: QuerySource,
    private readonly index: QueryIndex,
    private readonly near: CheckedNear,
    private readonly metric: string,
  ) {
    this.#similarity = similarityOf(metric, near.vector);
    this.best = new Best(near.k);
    this.#vector = new Float32Array(near.vector.length);
    const ids = [...(source.overlay?.keys() ?? [])];
    this.#own = new Set(ids.map((id) => idBytes(id).toString('latin1')));
  }

  /** Compares the vector of a record, if it matches the filter. */
  compare(id: string): void {
    const image = this.test(id);
    const value = image && (this.#stored(id) ?? this.#inRecord(image));
    if (value) this.best.add(id, this.#similarity(value));
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
    // An earlier version took numbers that the index cannot hold.
    return Array.isArray(value) && isInRange(value as number[]) ? (value as number[]) : undefined;
  }

  /** The highest score of a vector with numbers that are off by an error. */
  #highest(vector: Float32Array, error: number): number {
    const score = this.#similarity(vector);
    if (error === 0) return score;
    if (this.metric === 'dot') return score + error * lengthOf(this.near.vector);
    if (this.metric === 'l2') return 1 / (1 + Math.max(0, 1 / score - 1 - error));
    const minLength = lengthOf(vector) - error;
    return minLength > 0 ? score + error / minLength : Infinity;
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
    const see: VectorVisit = (key, idAt, vector, error) => {
      count++;
      // A stored vector may be rounded: all that may be among the best are compared exactly.
      if (vector && !this.best.mayTake(this.#highest(vector, error))) return false;
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

  /** Compares all that may be among the best by their codes; false: too many, none is compared. */
  async nearestOf(codes: Codes): Promise<boolean> {
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
    const maxRows = this.rows + codes.ids.length / scanShare;
    for (let size = enoughFor(this.near); this.rows < maxRows; size *= 4) {
      const slots = highest(scores, size);
      for (const slot of slots) {
        // No vector that is left can have a higher score.
        if (!this.best.mayTake(scores[slot]!)) return true;
        scores[slot] = -Infinity;
        this.compare(codes.ids[slot]!);
        this.rows++;
        if (slice.spend(1_000)) await slice.pause();
      }
      if (slots.length < size) return true;
    }
    this.best.clear();
    return false;
  }
}

/** Vectors to compare first: the best are usually among them. */
function enoughFor({ k }: CheckedNear): number {
  return 4 * k + 32;
}

/**
 * The int8 codes of all vectors of an index at one commit. They are of the differences from the mean
 * of all, which may be small beside the numbers themselves; of the cosine, with lengths made 1.
 */
class Codes {
  readonly ids: string[] = [];
  readonly slots = new Map<string, number>();
  readonly #kernel: VectorKernel;
  readonly #mean: Float64Array;
  #count = 0;
  /** Of each vector: scale, square of the length and error of its codes, and what a score adds. */
  #figures = new Float64Array(4 * maxExact);

  constructor(
    readonly seq: number,
    private readonly metric: string,
    dims: number,
  ) {
    this.#kernel = new VectorKernel(dims);
    this.#mean = new Float64Array(dims);
  }

  /** All vectors are counted before the first is added. */
  count(vector: Float32Array): void {
    const length = this.#lengthOf(vector);
    if (!Number.isFinite(length)) return;
    const mean = this.#mean;
    const share = 1 / ++this.#count;
    for (let i = 0; i < mean.length; i++) mean[i]! += (vector[i]! / length - mean[i]!) * share;
  }

  add(id: string, vector: Float32Array, stored: number): void {
    const slot = this.ids.length;
    if (4 * slot === this.#figures.length) this.#figures = doubled(this.#figures);
    this.ids.push(id);
    this.slots.set(id, slot);
    const length = this.#lengthOf(vector);
    // Both the stored vector and the one of the record have at least the length less the error.
    const off = this.metric === 'cosine' && stored > 0 ? stored / (length - stored) : stored;
    if (Number.isFinite(length) && off >= 0 && off < Infinity) {
      const { scale, squares, error } = round(this.#fromMean(vector), this.#kernel.at(slot));
      this.#figures.set([scale, squares, error + off, this.#added(vector, off)], 4 * slot);
    } else {
      this.#kernel.at(slot);
      this.#figures.set([0, 0, 0, Infinity], 4 * slot);
    }
  }

  /** The highest score that each vector may have: higher is nearer. */
  async scores(vector: Float32Array, { slice }: QuerySource): Promise<Float64Array> {
    const { metric } = this;
    const count = this.ids.length;
    const scores = new Float64Array(count);
    const codes = new Int8Array(vector.length);
    const { scale, squares, error } = round(this.#fromMean(vector), codes);
    const length = Math.sqrt(squares) + error;
    const added = this.#added(vector, 0);
    for (let from = 0; from < count; from += kernelBlock) {
      // Another query may have run since the last block.
      this.#kernel.query.set(codes);
      const products = this.#kernel.products(from, Math.min(kernelBlock, count - from));
      const figures = this.#figures.subarray(4 * from);
      for (let i = 0; i < products.length; i++) {
        const product = products[i]! * scale * figures[4 * i]!;
        const itsSquares = figures[4 * i + 1]!;
        const itsError = figures[4 * i + 2]!;
        let score = added + figures[4 * i + 3]!;
        if (metric === 'dot') {
          score += product + itsError * length + error * Math.sqrt(itsSquares);
        } else {
          const between = Math.sqrt(Math.max(0, squares + itsSquares - 2 * product));
          const distance = Math.max(0, between - error - itsError);
          score += metric === 'l2' ? 1 / (1 + distance) : -(distance ** 2) / 2;
        }
        scores[from + i] = score;
      }
      if (slice.spend(products.length * 100)) await slice.pause();
    }
    return scores;
  }

  /**
   * The part of a score that is of one of the two vectors, and an allowance for its last digits. The
   * product of two vectors is that of their differences from the mean and this part of each.
   */
  #added(vector: Float32Array, off: number): number {
    if (this.metric === 'l2') return 0;
    if (this.metric === 'cosine') return (vector.some((one) => one !== 0) ? 0.5 : 0) + lastDigits;
    const mean = this.#mean;
    const length = lengthOf(mean);
    const allowance = length * (off + lastDigits * (length + lengthOf(vector)));
    return dotOf(mean, vector) - length ** 2 / 2 + allowance;
  }

  /** What the numbers are divided by. Not finite: those of an earlier version may not be. */
  #lengthOf(vector: Float32Array): number {
    const length = lengthOf(vector);
    return Number.isFinite(length) && (this.metric !== 'cosine' || length === 0) ? 1 : length;
  }

  #fromMean(vector: Float32Array): Float64Array {
    const length = this.#lengthOf(vector);
    const from = new Float64Array(vector.length);
    for (let i = 0; i < from.length; i++) from[i] = vector[i]! / length - this.#mean[i]!;
    return from;
  }
}

/** Rounds a vector to codes. The codes times the scale are no farther from it than the error. */
function round(vector: Float64Array, codes: Int8Array) {
  const scale = scaleOf(vector);
  quantize(vector, scale, codes);
  let squares = 0;
  let errors = 0;
  for (let i = 0; i < vector.length; i++) {
    const rounded = codes[i]! * scale;
    squares += rounded ** 2;
    errors += (vector[i]! - rounded) ** 2;
  }
  // The last digits add a little.
  return { scale, squares, error: Math.sqrt(errors) + 1e-7 * Math.sqrt(squares + errors) };
}

/** What a score may lose to the last digits of its numbers. */
const lastDigits = 1e-12;

function dotOf(a: Float64Array, b: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

function lengthOf(vector: ArrayLike<number>): number {
  let squares = 0;
  for (let i = 0; i < vector.length; i++) squares += vector[i]! ** 2;
  return Math.sqrt(squares);
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
  const most = Math.floor(maxCodeBytes / (dims + 88));
  const codes = new Codes(source.view.seq, metric, dims);
  let count = 0;
  let isComplete = true;
  const see: VectorVisit = (_key, _idAt, vector) => {
    isComplete &&= vector !== undefined && ++count <= most;
    if (isComplete) codes.count(vector!);
    return false;
  };
  await eachVector(source, index, see, () => !isComplete);
  if (!isComplete) return undefined;
  await eachVector(source, index, (key, idAt, vector, error) => {
    codes.add(latin1(key, idAt), vector!, error);
    return false;
  });
  return codes;
}

function doubled(numbers: Float64Array): Float64Array<ArrayBuffer> {
  const more = new Float64Array(2 * numbers.length);
  more.set(numbers);
  return more;
}

/** The places of the `size` highest scores, highest first. */
function highest(scores: Float64Array, size: number): number[] {
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
type Similarity = (vector: ArrayLike<number>) => number;

function similarityOf(metric: string, wanted: Float32Array): Similarity {
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
  /** Best first. */
  #all: NearHit[] = [];

  constructor(private readonly size: number) {}

  add(id: string, score: number): void {
    // A stored vector of an earlier version may have numbers that are not finite.
    if (!Number.isFinite(score) || !this.mayTake(score)) return;
    const hit = { id, score };
    this.#all.splice(this.#all.findLastIndex((other) => byScore(other, hit) < 0) + 1, 0, hit);
    this.#all.length = Math.min(this.#all.length, this.size);
  }

  /** Whether a vector of this score may be among the best. */
  mayTake(score: number): boolean {
    return this.#all.length < this.size || !(score < this.#all.at(-1)!.score);
  }

  clear(): void {
    this.#all = [];
  }

  all(): NearHit[] {
    return this.#all;
  }
}
