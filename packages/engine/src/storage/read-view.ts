import type { RecordImage } from '../format/record.js';

/**
 * One consistent state of the database: a snapshot for readers, or the writer's own view with the
 * writes that are not on disk yet. Queries, checks and index builds work on either. Everything is
 * synchronous; callers split long scans into slices and continue from the last position.
 */
export interface ReadView {
  /** The last commit in this view. */
  readonly seq: number;
  /** The record, even if it has expired: callers check `isExpired`. */
  record(collection: number, id: string): RecordImage | undefined;
  /** As `record`, by the 16 bytes of an id. The image is in place: valid until the next read. */
  recordAt(collection: number, ids: Uint8Array, at: number): RecordImage | undefined;
  /** The id of the record with this key. */
  idOfKey(collection: number, key: string): string | undefined;
  /**
   * The id of the record with these values in a unique index (encoded as in format/encoding.ts).
   */
  idOfUnique(index: number, values: Uint8Array): string | undefined;
  /**
   * Records of a collection in id order. `test` gets each image in place (valid only during the
   * call) and selects records, which are returned as copies.
   */
  scan(collection: number, range: IdRange, test: RecordTest): Iterable<RecordImage>;
  /**
   * Calls `visit` with the entries of an index from `start` (included) to `end` (excluded) in the
   * direction of the range: in reverse `start` is the higher bound.
   */
  entries(index: number, range: EntryRange, visit: EntryVisit): void;
  /**
   * Ids of the expired records of a collection that are not removed yet; undefined when more than
   * `max` rows of any kind have expired.
   */
  expired(collection: number, now: number, max: number): readonly string[] | undefined;
}

/** Called for every record of a scan. */
export type RecordTest = (image: RecordImage) => boolean;

export interface IdRange {
  /** Start after this id, in the direction of the scan. */
  after?: string | undefined;
  reverse?: boolean | undefined;
}

export interface EntryRange {
  start: Uint8Array;
  end: Uint8Array;
  reverse?: boolean | undefined;
}

/**
 * Called with an index entry in place, valid only during the call: its encoded values, without the
 * index prefix, start at `start` and the 16 bytes of its id at `idAt`. True ends the iteration.
 */
export type EntryVisit = (bytes: Uint8Array, start: number, idAt: number) => boolean;
