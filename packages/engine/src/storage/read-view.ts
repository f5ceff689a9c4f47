import type { RecordImage } from '../format/record.js';

/**
 * One consistent state of the database: a snapshot for readers, or the writer's own view with the
 * writes that are not on disk yet. Queries, checks and index builds read through it and do not
 * know which one it is. Everything is synchronous; long scans are cut into slices by the caller,
 * who continues from the last position.
 */
export interface ReadView {
  /** The last commit that this view contains. */
  readonly seq: number;
  /** The record, also when it is past its expiry: callers that care ask `isExpired`. */
  record(collection: number, id: string): RecordImage | undefined;
  /** As `record`, by the 16 bytes of an id. The image is in place: valid until the next read. */
  recordAt(collection: number, ids: Uint8Array, at: number): RecordImage | undefined;
  /** The id that bears this key. */
  idOfKey(collection: number, key: string): string | undefined;
  /** The id that holds these values in a unique index (encoded as in index/encoding.ts). */
  idOfUnique(index: number, values: Uint8Array): string | undefined;
  /**
   * Records of a collection in id order. `test` sees each image in place (valid only during the
   * call) and says whether it is wanted; wanted ones come out as kept copies.
   */
  scan(collection: number, range: IdRange, test: RecordTest): Iterable<RecordImage>;
  /**
   * Shows entries of an index from `start` (included) to `end` (excluded) in the direction of
   * travel: in reverse `start` is the higher bound.
   */
  entries(index: number, range: EntryRange, visit: EntryVisit): void;
  /**
   * Ids of the records of a collection that are past their expiry and not removed yet; undefined
   * when more than `max` things have expired, of whatever kind.
   */
  expired(collection: number, now: number, max: number): readonly string[] | undefined;
}

/** Called for every record that a scan passes. */
export type RecordTest = (image: RecordImage) => boolean;

export interface IdRange {
  /** Start beyond this id, in the direction of travel. */
  after?: string | undefined;
  reverse?: boolean | undefined;
}

export interface EntryRange {
  start: Uint8Array;
  end: Uint8Array;
  reverse?: boolean | undefined;
}

/**
 * Sees an entry of an index in place, valid only during the call: its encoded values, without the
 * index's prefix, lie from `start` on and the 16 bytes of its id from `idAt` on. True ends the walk.
 */
export type EntryVisit = (bytes: Uint8Array, start: number, idAt: number) => boolean;
