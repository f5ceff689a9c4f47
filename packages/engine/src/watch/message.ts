import {
  type Change,
  type ChangeOp,
  type RecordImage,
  type RequestResult,
  toStoredRecord,
  type StoredRecord,
} from '../format/record.js';
import { type JsonObject, refuse } from '../value/documents.js';
import { type Hash64, hashText } from '../value/bytes.js';
import { readUint48 } from '../format/keys.js';

type WatchKind = 'changes' | 'initial' | 'initial_end' | 'bookmark';

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

/**
 * A resume token is a position in one history: the last commit that was delivered and, if known,
 * the chain hash there. So it is refused by another database, and after a failover that lost the
 * commit.
 *
 *   version u8 | lineage hash 8 | seq u48 | chain 8 when known
 */
export interface ResumePosition {
  seq: number;
  chain: Hash64 | undefined;
}

const version = 1;
const lengths = { plain: 15, withChain: 23 };

export function writeToken(lineage: string, { seq, chain }: ResumePosition): string {
  const bytes = Buffer.alloc(chain ? lengths.withChain : lengths.plain);
  bytes[0] = version;
  writeHash(hashText(lineage), bytes, 1);
  bytes.writeUIntBE(seq, 9, 6);
  if (chain) writeHash(chain, bytes, 15);
  return bytes.toString('base64url');
}

export function readToken(lineage: string, token: string): ResumePosition {
  const bytes = Buffer.from(token, 'base64url');
  const known = bytes.length === lengths.plain || bytes.length === lengths.withChain;
  // Node ignores characters that are not base64url, so the result is encoded again and compared.
  if (!known || bytes[0] !== version || bytes.toString('base64url') !== token) {
    throw badToken('cannot be read');
  }
  if (!sameHash(readHash(bytes, 1), hashText(lineage))) throw badToken('is of another database');
  const chain = bytes.length === lengths.withChain ? readHash(bytes, 15) : undefined;
  return { seq: readUint48(bytes, 9), chain };
}

export function badToken(problem: string) {
  return refuse(
    'BAD_RESUME_TOKEN',
    `The resume token ${problem}; start again with include_initial.`,
  );
}

export function sameHash(a: Hash64, b: Hash64): boolean {
  return a.high === b.high && a.low === b.low;
}

function writeHash(hash: Hash64, bytes: Buffer, at: number): void {
  bytes.writeUInt32BE(hash.high, at);
  bytes.writeUInt32BE(hash.low, at + 4);
}

function readHash(bytes: Buffer, at: number): Hash64 {
  return { high: bytes.readUInt32BE(at), low: bytes.readUInt32BE(at + 4) };
}
