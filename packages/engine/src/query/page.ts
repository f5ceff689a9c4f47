import type { RecordImage } from '../format/record.js';
import { fingerprintOf, readCursor, writeCursor } from './cursor.js';
import { openInOrder } from './open-walk.js';
import type { Plan } from './plan.js';
import { compilePredicate, type Predicate } from './predicate.js';
import type { CheckedFind } from './query.js';
import type { RecordSink } from './record-sink.js';
import { PositionSort } from './position-sort.js';
import { Sorter, type Position } from './sort.js';
import { overlaid, visitAll, walkSource, type QuerySource } from './source.js';
import { IdWalk, type Walk } from './walk.js';

const maxBatchRecords = 256;
const maxBatchBytes = 256 * 1024;

/**
 * The records of one find, passed to the sink in order: those after the cursor, without the skipped
 * ones, up to the limit, merged with a transaction's own records.
 */
export class Page<Records> {
  returned = 0;
  /** The limit is reached, and there is at least one more record. */
  isFull = false;
  readonly #sorter: Sorter;
  readonly #resume: Position | undefined;
  #matches: Predicate;
  /** Remaining records of the overlay, in order. */
  #own: { image: RecordImage; position: Position }[] = [];
  #skip: number;
  /** Number of records in the current batch of the sink. */
  #batchRecords = 0;
  #batchBytes = 0;
  #full: Records[] = [];
  #sort: PositionSort | undefined;
  /** Position of the last record within the limit. */
  #last: Position | undefined;

  constructor(
    private readonly source: QuerySource,
    private readonly query: CheckedFind,
    private readonly sink: RecordSink<Records>,
  ) {
    const { condition, order, cursor } = query;
    this.#sorter = new Sorter(order);
    this.#matches = compilePredicate(condition);
    this.#resume = cursor ? readCursor(cursor, this.#fingerprint(), order, source.now) : undefined;
    // Earlier pages have skipped them.
    this.#skip = this.#resume ? 0 : query.skip;
  }

  /** The walk to run with `visit`, until it ends or the page is full. */
  async open(plan: Plan): Promise<Walk> {
    return plan.order === 'sort' ? this.#openSorted(plan) : this.#openInOrder(plan);
  }

  #openInOrder(plan: Plan): Walk {
    this.#own = overlaid(this.source)
      .filter((image) => this.#matches(image) && this.#isBehindCursor(image))
      .map((image) => ({ image, position: this.#sorter.positionOf(image) }))
      .sort((a, b) => this.#sorter.compare(a.position, b.position));
    const { order, limit } = this.query;
    // One extra record shows whether there is a next page.
    const page = { order, resume: this.#resume, wanted: this.#skip + limit + 1 };
    return openInOrder(walkSource(this.source), plan, page);
  }

  visit = (image: RecordImage): boolean => {
    if (!this.#matches(image)) return false;
    if (this.#resume && !this.#isBehindCursor(image)) return false;
    if (this.#own.length > 0) {
      this.#addOwn((own) => this.#sorter.compareRow(image, own) > 0);
      if (this.isFull) return true;
    }
    return this.#add(image);
  };

  /** The walk has ended: adds the remaining records of the overlay. */
  finish(): void {
    if (!this.isFull) this.#addOwn(() => true);
  }

  /** A complete batch, if there is one. */
  takeBatch(): Records | undefined {
    return this.#full.shift();
  }

  takeRest(): Records {
    return this.sink.take();
  }

  /** Frees the memory and the temporary file of the sort. */
  close(): void {
    this.#sort?.close();
  }

  nextCursor(): string {
    if (!this.isFull || !this.#last) return '';
    return writeCursor(this.#last, this.#fingerprint(), this.source.now);
  }

  /** Computed on demand: most queries neither continue a page nor return a cursor. */
  #fingerprint(): string {
    const { condition, order } = this.query;
    return fingerprintOf(this.source.collection.name, condition, order);
  }

  /** Sorts the positions of all matching records, then walks them by id. */
  async #openSorted(plan: Plan): Promise<Walk> {
    const capacity = this.#skip + this.query.limit + 1;
    const { sortSpace, slice, overlay } = this.source;
    const sort = (this.#sort = new PositionSort(this.#sorter, capacity, sortSpace, slice));
    const visit = (image: RecordImage) =>
      this.#matches(image) && this.#isBehindCursor(image) && sort.add(image);
    const rows = await visitAll(this.source, plan, visit, () => sort.spill());
    const sorted = await sort.sorted();
    this.#matches = () => true;
    return new IdWalk(walkSource(this.source), sorted, rows, overlay);
  }

  #isBehindCursor(image: RecordImage): boolean {
    return !this.#resume || this.#sorter.compareRow(image, this.#resume) > 0;
  }

  #addOwn(isDue: (position: Position) => boolean): void {
    while (!this.isFull && this.#own.length > 0 && isDue(this.#own[0]!.position)) {
      this.#add(this.#own.shift()!.image);
    }
  }

  /** True when the page or the batch is full. */
  #add(image: RecordImage): boolean {
    if (this.#skip > 0) {
      this.#skip--;
      return false;
    }
    if (this.returned === this.query.limit) return (this.isFull = true);
    const isNext = this.#isBatchFull(image.end);
    if (isNext) {
      this.#full.push(this.sink.take());
      this.#batchRecords = this.#batchBytes = 0;
    }
    this.sink.add(image);
    this.#batchRecords++;
    this.#batchBytes += image.end;
    if (++this.returned === this.query.limit) this.#last = this.#sorter.positionOf(image);
    return isNext;
  }

  #isBatchFull(nextBytes: number): boolean {
    if (this.#batchRecords === maxBatchRecords) return true;
    return this.#batchRecords > 0 && this.#batchBytes + nextBytes > maxBatchBytes;
  }
}
