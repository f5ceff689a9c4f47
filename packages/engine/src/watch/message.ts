import type { Change, ChangeOp } from '../format/changes.js';
import type { JsonObject } from '../value/documents.js';
import type { Hash64 } from '../value/hash.js';
import type { RecordImage } from '../format/record.js';
import type { RequestResult } from '../format/request-results.js';
import { toStoredRecord, type StoredRecord } from '../format/stored-record.js';

export type WatchKind = 'changes' | 'initial' | 'initial_end' | 'bookmark';

/** One message of a watch. A `changes` message is one complete commit. */
export interface WatchMessage<Shown = WatchChange> {
  kind: WatchKind;
  /** The last commit that this message covers. */
  seq: number;
  /** Epoch of the leader that committed it. */
  epoch: number;
  /** Commit time. Only in `changes`. */
  committedAt?: Date;
  /** In commit order; in `initial`, records that match at the start, each as an insert. */
  changes: Shown[];
  /** Continues after this message. "" in `initial`, which cannot be continued in the middle. */
  resumeToken: string;
  /** The last commit when this message was created. */
  leaderSeq: number;
  /** Chain hash over all commits up to `seq`. */
  chainHash: Hash64;
  /** Results of the requests in the commit. Only for followers. */
  results?: readonly RequestResult[];
}

/** A change that a watch may show, from the log. */
export interface VisibleChange {
  op: ChangeOp;
  /** Name of the collection. */
  collection: string;
  id: string;
  seq: number;
  after?: RecordImage | undefined;
  before?: RecordImage | undefined;
  /** It matches the filter now and did not before. */
  entered: boolean;
  /** It matched the filter before and does not now. */
  left: boolean;
}

/** One change of one record. */
export type WatchChange<T = JsonObject> = {
  /** Name of the collection. */
  collection: string;
  /** The record matches the filter now and did not before. */
  entered: boolean;
  /** The record matched the filter before and does not now. */
  left: boolean;
  /** The record before the change. Only on request, and not for an insert. */
  before?: StoredRecord<T>;
} & (
  | { op: 'insert' | 'update'; record: StoredRecord<T> }
  | { op: 'delete' | 'expire'; record: RemovedRecord }
);

/** The remaining fields of a removed record. */
export interface RemovedRecord {
  id: string;
  key: string;
  /** Its last revision. */
  rev: number;
  /** The commit that removed it. */
  seq: number;
}

export type RecordFilter = (image: RecordImage) => boolean;

/** The change as a watch with this filter sees it; undefined when it is filtered out. */
export function visibleChange(
  change: Change,
  seq: number,
  collection: string,
  filter: RecordFilter | undefined,
): VisibleChange | undefined {
  const { op, id, after, before } = change;
  if (!filter) return { op, collection, id, seq, after, before, entered: false, left: false };
  const matched = before !== undefined && filter(before);
  const matches = after !== undefined && filter(after);
  if (!matched && !matches) return undefined;
  const [entered, left] = [matches && !matched, matched && !matches];
  return { op, collection, id, seq, after, before, entered, left };
}

export interface ShowOptions {
  includeBefore?: boolean | undefined;
  /** Converts the data of a record. Without it the data is shared: do not modify it. */
  fields?: ((data: JsonObject) => JsonObject) | undefined;
}

/** The default conversion of changes to what a watch shows. */
export function showChange<T = JsonObject>(
  options: ShowOptions = {},
): (change: VisibleChange) => WatchChange<T> {
  const { includeBefore = false, fields } = options;
  const show = (image: RecordImage) =>
    toStoredRecord<T>(image, fields ? fields(image.data) : image.data);
  return ({ op, collection, id, seq, after, before, entered, left }) => {
    const about = { collection, entered, left };
    const old = includeBefore && before ? { before: show(before) } : undefined;
    if (op === 'insert' || op === 'update') {
      return { ...about, op, record: show(after!), ...old };
    }
    const record = { id, key: before!.key, rev: before!.rev, seq };
    return { ...about, op, record, ...old };
  };
}
