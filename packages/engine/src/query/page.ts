import { createHash } from 'node:crypto';
import { type Json, refuse, type JsonObject } from '../value/documents.js';
import {
  conditionText,
  type Condition,
  isStoredId,
  canonicalText,
  checkJson,
} from '../value/filter.js';
import { type Position, type SortOrder, PositionSort, Sorter } from './sort.js';
import type { RecordImage } from '../format/record.js';
import { openInOrder } from './open-walk.js';
import type { Plan } from './plan.js';
import { compilePredicate, type Predicate } from '../value/predicate.js';
import type { CheckedFind, Projection } from './query.js';
import { overlaid, visitAll, walkSource, type QuerySource } from './source.js';
import type { Highlights } from './search-text.js';
import { IdWalk, type Walk } from './walk.js';

export const cursorLifetimeMs = 24 * 60 * 60 * 1000;

const version = 1;
const startOver = 'start again without it';

/** Identifies the query: a cursor continues this query and no other. */
export function fingerprintOf(collection: string, condition: Condition, order: SortOrder): string {
  const steps = order.keys.map((key): Json => [key.path.text, key.desc]);
  const text = canonicalText([collection, conditionText(condition), steps, order.idDesc]);
  return createHash('sha256').update(text).digest('base64url').slice(0, 22);
}

/** `[version, issued at, fingerprint, keys, id]`; a key is `[value]`, or `[]` for a missing one. */
export function writeCursor(position: Position, fingerprint: string, now: number): string {
  const keys = position.keys.map((key) => (key === undefined ? [] : [key]));
  const text = JSON.stringify([version, now, fingerprint, keys, position.id]);
  return Buffer.from(text).toString('base64url');
}

/** The position after which the query continues. */
export function readCursor(
  cursor: string,
  fingerprint: string,
  order: SortOrder,
  now: number,
): Position {
  const [issuedAt, madeFor, position] = decode(cursor);
  if (madeFor !== fingerprint || position.keys.length !== order.keys.length) {
    throw refuse(
      'BAD_CURSOR',
      `The cursor belongs to another query: send the filter and order it came with, or ${startOver}.`,
    );
  }
  if (now - issuedAt > cursorLifetimeMs) {
    throw refuse('CURSOR_EXPIRED', `The cursor is older than 24 hours; ${startOver}.`);
  }
  return position;
}

function decode(cursor: string): [issuedAt: number, fingerprint: string, position: Position] {
  const unreadable = () => refuse('BAD_CURSOR', `The cursor is not readable; ${startOver}.`);
  let parts: unknown;
  try {
    parts = JSON.parse(Buffer.from(cursor, 'base64url').toString());
  } catch {
    throw unreadable();
  }
  if (!Array.isArray(parts) || parts.length !== 5) throw unreadable();
  const [madeBy, issuedAt, fingerprint, keys, id] = parts as unknown[];
  if (madeBy !== version || typeof issuedAt !== 'number' || typeof fingerprint !== 'string') {
    throw unreadable();
  }
  if (!Array.isArray(keys) || typeof id !== 'string' || !isStoredId(id)) throw unreadable();
  const values = keys.map((key: unknown) => {
    if (!Array.isArray(key) || key.length > 1) throw unreadable();
    return key.length === 0 ? undefined : checkJson(key[0], unreadable);
  });
  return [issuedAt, fingerprint, { keys: values, id }];
}

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
    private readonly join?: (image: RecordImage) => JsonObject,
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
    // A lookup reads other records, which overwrites one that is read in place.
    const found = this.join ? image.keep() : image;
    this.sink.add(found, undefined, this.join?.(found));
    this.#batchRecords++;
    this.#batchBytes += found.end;
    if (++this.returned === this.query.limit) this.#last = this.#sorter.positionOf(found);
    return isNext;
  }

  #isBatchFull(nextBytes: number): boolean {
    if (this.#batchRecords === maxBatchRecords) return true;
    return this.#batchRecords > 0 && this.#batchBytes + nextBytes > maxBatchBytes;
  }
}

/** What a search says of a record that it found. */
export interface Hit {
  readonly score: number;
  readonly highlights?: Highlights;
}

/** Receives the records of a find one by one and returns them in batches. */
export interface RecordSink<Records> {
  /** The image is read in place: it is valid only during the call. */
  add(image: RecordImage, hit?: Hit, parts?: JsonObject): void;
  /** The records since the last call. */
  take(): Records;
}

export class FoundRecord {
  constructor(
    readonly image: RecordImage,
    /** The requested parts of the document; undefined: all of it. */
    readonly parts: JsonObject | undefined,
    readonly hit?: Hit,
  ) {}

  /** The document, or its requested parts. */
  get data(): JsonObject {
    return this.parts ?? this.image.data;
  }
}

/** Keeps the records themselves. */
export class RecordList implements RecordSink<FoundRecord[]> {
  #records: FoundRecord[] = [];

  constructor(private readonly project: Projection | undefined) {}

  add(image: RecordImage, hit?: Hit, parts?: JsonObject): void {
    const copy = image.keep();
    this.#records.push(new FoundRecord(copy, parts ?? this.project?.(copy), hit));
  }

  take(): FoundRecord[] {
    const taken = this.#records;
    this.#records = [];
    return taken;
  }
}
