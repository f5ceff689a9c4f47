import type { ReadView } from '../storage/views.js';
import type { RecordImage } from '../format/record.js';
import { idLength, writeId } from '../format/keys.js';
import { idBefore, idBehind, isStoredId } from '../value/filter.js';
import type { IdRangeAccess } from './plan.js';
import type { Slice } from '../core/slice.js';

/** What a query reads from. */
export interface WalkSource {
  readonly view: ReadView;
  /** The number of the collection. */
  readonly collection: number;
  /** Records that have expired by then are left out. */
  readonly now: number;
  /** Ids of records of the view to leave out, because others replace them. */
  readonly hidden?: { has(id: string): boolean } | undefined;
  readonly slice: Slice;
  /** Visits read other records, which overwrites the row that a scan reads in place. */
  readonly readsOthers?: boolean | undefined;
}

/**
 * Called with each record in place, valid only during the call: use `keep()` to copy it. Returning
 * true ends the run; the next one continues after this record.
 */
export type Visit = (image: RecordImage) => boolean;

/** An iteration over records that can be paused and continued at any record. */
export interface Walk {
  /** Rows read so far, from an index or the collection. */
  readonly rows: number;
  /**
   * Continues until `visit` ends it or a pause is due (false), or there are no more records (true).
   */
  run(visit: Visit): boolean;
}

/** The collection or a part of it, by id. */
export class ScanWalk implements Walk {
  rows = 0;
  #after: string | undefined;
  #ended = false;
  readonly #last: string | undefined;

  constructor(
    private readonly source: WalkSource,
    private readonly reverse: boolean,
    range?: IdRangeAccess,
    after?: string,
  ) {
    const [first, last] = reverse ? [range?.high, range?.low] : [range?.low, range?.high];
    this.#last = last;
    this.#after = after ?? this.#justBefore(first);
  }

  /** The last record that was read, or the one after which the walk starts. */
  get lastId(): string | undefined {
    return this.#after;
  }

  run(visit: Visit): boolean {
    if (this.#ended) return true;
    const { view, collection, now, hidden, slice, readsOthers } = this.source;
    const last = this.#last;
    let beyond = false;
    let rows = 0;
    let isVisitDue = false;
    let isPauseDue = false;
    // The work is done inside the test, on the record in place: only the record that ends the run
    // is returned, unless visits read others.
    const test = (image: RecordImage): boolean => {
      if (last !== undefined && this.#isBeyond(image.id, last)) return (beyond = true);
      rows++;
      if (hidden !== undefined && hidden.has(image.id)) return false;
      const isLive = !image.isExpired(now);
      if (readsOthers) {
        isPauseDue = slice.spend(image.end);
        return (isVisitDue = isLive) || isPauseDue;
      }
      const stop = isLive && visit(image);
      return slice.spend(image.end) || stop;
    };
    let end: string | undefined;
    for (const image of view.scan(
      collection,
      { after: this.#after, reverse: this.reverse },
      test,
    )) {
      if (readsOthers && !beyond) {
        const stop = isVisitDue && visit(image);
        if (!stop && !isPauseDue) continue;
      }
      end = image.id;
      break;
    }
    this.rows += rows;
    this.#after = end;
    this.#ended = beyond || end === undefined;
    return this.#ended;
  }

  #isBeyond(id: string, last: string): boolean {
    return this.reverse ? id < last : id > last;
  }

  /** Where to start so that `first` is included; from the beginning when it is not an id. */
  #justBefore(first: string | undefined): string | undefined {
    if (first === undefined || !isStoredId(first)) return undefined;
    return this.reverse ? idBehind(first) : idBefore(first);
  }
}

/** Records by their ids, in the order given. */
export class IdWalk implements Walk {
  readonly #id = Buffer.alloc(idLength);

  constructor(
    private readonly source: WalkSource,
    private readonly ids: Iterator<string | { readonly id: string }>,
    readonly rows: number,
    /** Records that replace those of the view. */
    private readonly instead?: ReadonlyMap<string, RecordImage | null>,
  ) {}

  run(visit: Visit): boolean {
    const { now, slice } = this.source;
    for (;;) {
      const { value, done } = this.ids.next();
      if (done) return true;
      const image = this.#record(typeof value === 'string' ? value : value.id);
      if (!image || image.isExpired(now)) continue;
      const stop = visit(image);
      if (slice.spend(image.end) || stop) return false;
    }
  }

  #record(id: string): RecordImage | undefined {
    const { view, collection, hidden } = this.source;
    const own = this.instead?.get(id);
    if (own) return own;
    if (hidden?.has(id)) return undefined;
    writeId(id, this.#id, 0);
    return view.recordAt(collection, this.#id, 0);
  }
}
