import type { CollectionInfo, Core } from '../../core/core.js';
import { type Commit, type RecordImage, decodeCommit } from '../../format/record.js';
import { prefixKey } from '../../format/keys.js';
import {
  encodeFrame,
  frameKinds,
  jsonFrame,
  hashToHex,
  type BackupCatalog,
  Chunks,
  backupVersion,
  batchesVersion,
  type BackupFormat,
  type BackupHeader,
  type BackupPart,
} from './frames.js';
import {
  encodeRow,
  encodeBatchRow,
  encodeCommitRow,
  encodeRecordRow,
  toPortable,
  checkedJson,
  type PortableBatch,
} from './portable.js';
import { checkCollectionName, refuse } from '../../value/documents.js';
import { durableSnapshot } from '../../core/durable-snapshot.js';
import { retainBatches } from '../../core/log-trim.js';
import { frameChecksum, frameCommits, frameRows } from '../../storage/log/segment.js';
import { lineageOf, type DatabaseState, type TableRow } from '../../storage/file/tables.js';
import type { Hash64 } from '../../value/bytes.js';
import type { Slice } from '../../core/slice.js';
import { ScanWalk, type Visit } from '../../query/walk.js';
import type { SnapshotView } from '../../storage/views.js';
import { compacted } from '../../watch/log-reader.js';

const frameBytes = 64 * 1024;

/** The format that can be restored: frames of records, or of commits for an increment. */
function snapshotWriter(core: Core): BackupWriter {
  let kind: number = frameKinds.records;
  let rows: Buffer[] = [];
  let bytes = 0;

  const flush = (): Buffer | undefined => {
    if (bytes === 0) return undefined;
    const frame = encodeFrame(kind, Buffer.concat(rows));
    rows = [];
    bytes = 0;
    return frame;
  };
  const add = (row: Buffer): Buffer | undefined => {
    rows.push(row);
    bytes += row.length;
    return bytes >= frameBytes ? flush() : undefined;
  };

  return {
    begin: (scope) => jsonFrame(frameKinds.catalog, catalogOf(scope)),
    record(collection: CollectionInfo, image: RecordImage) {
      kind = frameKinds.records;
      // A frame has one collection: `flush` is called between two.
      if (bytes === 0) rows = [prefixKey(collection.id)];
      return add(encodeRecordRow(image.id, toPortable(image, collection)));
    },
    commit(commit: Commit) {
      kind = frameKinds.commits;
      return add(portableCommit(core, commit));
    },
    batch({ commits, rows, ...batch }) {
      kind = frameKinds.batches;
      const encoded = commits.map((commit) => portableCommit(core, commit));
      return add(encodeBatchRow(batch, encoded, rows.map(encodeRow)));
    },
    row(row) {
      kind = frameKinds.rows;
      return add(encodeRow(row));
    },
    flush,
  };
}

function portableCommit(core: Core, commit: Commit): Buffer {
  const changes = commit.changes.map(({ op, collection, id, after }) => ({
    op,
    collection,
    id,
    record: after && toPortable(after, core.catalog.byId(collection)),
  }));
  return encodeCommitRow(commit, changes);
}

function catalogOf({ collections, only, sinceChain, commit }: BackupScope): BackupCatalog {
  return {
    collections: collections.map(({ id, name }) => ({ number: id, name })),
    // Others come back with the declarations, which are records.
    indexes: collections.flatMap(({ name, indexes }) =>
      indexes
        .filter(({ definition: { kind, collation, where } }) => !kind && !collation && !where)
        .map(({ definition }) => ({
          collection: name,
          fields: [...definition.fields],
          unique: Boolean(definition.unique),
          sparse: Boolean(definition.sparse),
        })),
    ),
    only: only ? [...only].sort() : null,
    since_chain: sinceChain ? hashToHex(sinceChain) : null,
    ...(commit && {
      commit: { seq: commit.seq, epoch: commit.epoch, chain: hashToHex(commit.chain) },
    }),
  };
}

const pieceBytes = 64 * 1024;

/** The format for people and other programs: a JSON object for each record, or each change. */
function ndjsonWriter(core: Core): BackupWriter {
  let lines: string[] = [];
  let length = 0;

  const flush = (): Buffer | undefined => {
    if (length === 0) return undefined;
    const piece = Buffer.from(lines.join(''));
    lines = [];
    length = 0;
    return piece;
  };
  const add = (text: string): void => {
    lines.push(text, '\n');
    length += text.length + 1;
  };
  const full = () => (length >= pieceBytes ? flush() : undefined);

  return {
    begin: () => undefined,
    record(collection, image) {
      add(`{"collection":"${collection.name}",${membersOf(image, collection)}}`);
      return full();
    },
    commit({ seq, at, changes }) {
      for (const { op, collection: number, id, after, before } of changes) {
        const collection = core.catalog.byId(number);
        if (collection === core.catalog.system) continue;
        const about = `"op":"${op}","collection":"${collection.name}","committed_at":${timeOf(at)}`;
        const members = after
          ? membersOf(after, collection)
          : headOf({ id, key: before?.key ?? '', rev: before?.rev ?? 0, seq });
        add(`{${about},"record":{${members}}}`);
      }
      return full();
    },
    batch: () => undefined,
    row: () => undefined,
    flush,
  };
}

/** The members of the record as the REST bridge shows it, built around its JSON. */
function membersOf(image: RecordImage, collection: CollectionInfo): string {
  const json = checkedJson(image, collection);
  const times = `"created_at":${timeOf(image.createdAt)},"updated_at":${timeOf(image.updatedAt)}`;
  const expiry = image.expiresAt ? `,"expires_at":${timeOf(image.expiresAt)}` : '';
  return `${headOf(image)},${times}${expiry},"data":${json}`;
}

function headOf({ id, key, rev, seq }: Pick<RecordImage, 'id' | 'key' | 'rev' | 'seq'>): string {
  return `"id":"${id}","key":${JSON.stringify(key)},"rev":${rev},"seq":${seq}`;
}

function timeOf(ms: number): string {
  return `"${new Date(ms).toISOString()}"`;
}

export interface BackupOptions {
  /** `snapshot` (default) can be restored; `ndjson` is for other programs. */
  format?: BackupFormat | undefined;
  /** Names of the collections to back up. Absent or empty: all. */
  collections?: readonly string[] | undefined;
  /** Only commits after this one: an increment on a backup with that `seq`. */
  sinceSeq?: number | undefined;
  /**
   * Number the backup by batches of the log, so that increments have raw rows, too. Only for
   * snapshots of all collections. The log is retained from the first such backup on.
   */
  batches?: boolean | undefined;
  signal?: AbortSignal | undefined;
  onProgress?: ((progress: BackupProgress) => void) | undefined;
}

/** How a log archive is written. */
export interface ArchiveOptions extends BackupOptions {
  /** An increment even if `sinceSeq` is 0: all commits, on a backup of the empty database. */
  fromFirst?: boolean | undefined;
}

export interface BackupProgress {
  /** Records, or in an increment changes, so far. */
  records: number;
  /** Data bytes so far. */
  bytes: number;
}

/**
 * Backs the database up while it serves: a snapshot at one commit, read a few milliseconds at a
 * time, at the pace of the consumer.
 */
export async function* backup(
  core: Core,
  options: ArchiveOptions = {},
): AsyncGenerator<BackupPart, void, void> {
  const only = options.collections?.length ? options.collections : undefined;
  for (const name of only ?? []) checkCollectionName(name);
  const format = options.format ?? 'snapshot';
  const byBatches = Boolean(options.batches) && format === 'snapshot' && !only;
  if (byBatches && !options.fromFirst) await retainBatches(core);
  const { view, state } = await durableSnapshot(core);
  // Retains later commits for a follower or an increment that continues from here.
  const since = options.sinceSeq || 0;
  const pin = byBatches
    ? core.pinLog(Infinity, since || view.lsn)
    : core.pinLog(since || state.seq + 1);
  try {
    const at = byBatches
      ? { seq: view.lsn, epoch: state.epoch, chain: batchChain(core, view.lsn) }
      : state;
    const sinceChain = byBatches
      ? sinceBatchOf(core, view, options)
      : sinceChainOf(core, view, state, options);
    const version = byBatches ? batchesVersion : backupVersion;
    yield { kind: 'header', header: headerOf(core, at, format, since, version) };
    const all = format === 'ndjson' ? core.catalog.all() : core.catalog.allWithSystem();
    const taken = all.filter(({ name }) => !only || only.includes(name));
    const writer = format === 'ndjson' ? ndjsonWriter(core) : snapshotWriter(core);
    const run = new BackupRun(core, view, writer, options.signal);
    const scope = { collections: taken, only, sinceChain, commit: byBatches ? state : undefined };
    const { chunks } = run;
    for await (const piece of run.pieces(scope, since)) {
      chunks.add(piece);
      for (let bytes = chunks.next(); bytes; bytes = chunks.next()) {
        yield { kind: 'data', bytes };
        options.onProgress?.({ records: chunks.records, bytes: chunks.bytes });
      }
    }
    const rest = chunks.rest();
    if (rest) yield { kind: 'data', bytes: rest };
    options.onProgress?.({ records: chunks.records, bytes: chunks.bytes });
    yield { kind: 'trailer', trailer: chunks.trailer() };
  } finally {
    pin.release();
    view.done();
  }
}

/** Produces the data of one backup. */
class BackupRun {
  readonly chunks = new Chunks();
  readonly #slice: Slice;

  constructor(
    private readonly core: Core,
    private readonly view: SnapshotView,
    private readonly writer: BackupWriter,
    private readonly signal: AbortSignal | undefined,
  ) {
    this.#slice = core.newSlice();
  }

  async *pieces(scope: BackupScope, sinceSeq: number): AsyncGenerator<Buffer, void, void> {
    const head = this.writer.begin(scope);
    if (head) yield head;
    if (scope.sinceChain) {
      yield* scope.commit ? this.#batches(sinceSeq) : this.#commits(scope, sinceSeq);
      return;
    }
    for (const collection of scope.collections) yield* this.#records(collection);
    if (!scope.only) yield* this.#rows();
  }

  async *#records(collection: CollectionInfo): AsyncGenerator<Buffer, void, void> {
    const { view } = this;
    // All records, including those that expired and are not swept yet.
    const source = { view, collection: collection.id, now: 0, slice: this.#slice };
    const walk = new ScanWalk(source, false);
    let piece: Buffer | undefined;
    const visit: Visit = (image) => {
      this.chunks.records++;
      piece = this.writer.record(collection, image);
      return piece !== undefined;
    };
    for (let ended = false; !ended;) {
      await this.#rest();
      ended = walk.run(visit);
      if (piece) yield piece;
      piece = undefined;
    }
    const last = this.writer.flush();
    if (last) yield last;
  }

  async *#rows(): AsyncGenerator<Buffer, void, void> {
    for (const row of this.view.rows('rows', {})) {
      await this.#rest();
      const piece = this.writer.row(row);
      if (piece) yield piece;
    }
    const last = this.writer.flush();
    if (last) yield last;
  }

  async *#commits(scope: BackupScope, sinceSeq: number): AsyncGenerator<Buffer, void, void> {
    const { core, view } = this;
    const wanted = new Set(scope.collections.map(({ id }) => id));
    for (let seq = sinceSeq + 1; seq <= view.seq; seq++) {
      await this.#rest();
      const row = core.commitRow(seq);
      if (!row) throw refuse('CORRUPT', `The change log has no commit ${seq}.`);
      const commit = decodeCommit(seq, row, core.codec);
      const changes = commit.changes.filter((change) => wanted.has(change.collection));
      this.chunks.records += changes.length;
      const piece = this.writer.commit({ ...commit, changes });
      if (piece) yield piece;
    }
    const last = this.writer.flush();
    if (last) yield last;
  }

  async *#batches(sinceSeq: number): AsyncGenerator<Buffer, void, void> {
    const { core, view } = this;
    for (const { frame, head } of core.store.log!.frames(sinceSeq + 1, view.lsn)) {
      await this.#rest();
      const commits = Array.from(frameCommits(frame), (bytes, i) =>
        decodeCommit(head.firstSeq + i, bytes, core.codec),
      );
      const rows = [...frameRows(frame)].filter(({ table }) => table === 'rows');
      this.chunks.records += rows.length;
      for (const { changes } of commits) this.chunks.records += changes.length;
      const batch = { seq: head.lsn, at: head.at, checksum: frameChecksum(frame) };
      const piece = this.writer.batch({ ...batch, commits, rows });
      if (piece) yield piece;
    }
    const last = this.writer.flush();
    if (last) yield last;
  }

  /** Yields when a pause is due, then checks that the snapshot is still open. */
  async #rest(): Promise<void> {
    if (this.#slice.due()) await this.#slice.pause();
    this.signal?.throwIfAborted();
    if (this.core.closed) throw this.core.closed;
  }
}

/** What stands for the chain hash after a batch, which the log must have. */
export function batchChain(core: Core, lsn: number): Hash64 {
  for (const { frame } of core.store.log!.frames(lsn, lsn)) {
    return { high: 0, low: frameChecksum(frame) };
  }
  const { firstLsn } = core.store.log!;
  throw refuse(
    'WATCH_COMPACTED',
    `The log begins at commit ${firstLsn} and no longer has ${lsn}: take a full backup.`,
    { oldest_seq: String(firstLsn) },
  );
}

/** The chain of the batch that an increment builds on; undefined for a full backup. */
function sinceBatchOf(
  core: Core,
  view: SnapshotView,
  { sinceSeq = 0 }: ArchiveOptions,
): Hash64 | undefined {
  if (sinceSeq === 0) return undefined;
  checkSince(sinceSeq, view.lsn);
  return batchChain(core, sinceSeq);
}

function checkSince(sinceSeq: number, seq: number): void {
  if (Number.isSafeInteger(sinceSeq) && sinceSeq >= 0 && sinceSeq <= seq) return;
  throw refuse(
    'BAD_REQUEST',
    `since_seq must be the seq of a backup of this database, which is at ${seq}.`,
  );
}

/** The chain hash at the commit that an increment builds on; undefined for a full backup. */
function sinceChainOf(
  core: Core,
  view: SnapshotView,
  state: DatabaseState,
  { sinceSeq = 0, fromFirst }: ArchiveOptions,
): Hash64 | undefined {
  if (sinceSeq === 0 && !fromFirst) return undefined;
  checkSince(sinceSeq, state.seq);
  for (const _row of view.rows('rows', { limit: 1 })) {
    throw refuse(
      'BAD_REQUEST',
      'This database has rows beside its records, and the change log does not know of them: ' +
        'take backups with `batches: true`, the full one and its increments.',
    );
  }
  if (sinceSeq + 1 < state.oldestSeq) throw compacted(sinceSeq + 1, state.oldestSeq);
  return chainAt(core, state, sinceSeq);
}

/** The chain hash after commit `seq`, which the log must reach. */
export function chainAt(core: Core, state: DatabaseState, seq: number): Hash64 {
  if (seq === state.seq) return state.chain;
  if (seq + 1 === state.oldestSeq) return state.oldestChain;
  const row = core.commitRow(seq);
  if (!row) throw refuse('CORRUPT', `The change log has no commit ${seq}.`);
  return decodeCommit(seq, row, core.codec).chain;
}

function headerOf(
  core: Core,
  state: Pick<DatabaseState, 'seq' | 'epoch' | 'chain'>,
  format: BackupFormat,
  sinceSeq: number,
  formatVersion: number,
): BackupHeader {
  return {
    formatVersion,
    seq: state.seq,
    epoch: state.epoch,
    lineageId: lineageOf(core.tables),
    createdAt: new Date(core.clock.now()),
    format,
    sinceSeq,
    chainHash: state.chain,
  };
}

/**
 * Encodes the data of a backup in one format. Returned bytes are written to the backup as they are.
 */
interface BackupWriter {
  begin(scope: BackupScope): Buffer | undefined;
  /** Adds a record. Returns bytes when enough were collected. */
  record(collection: CollectionInfo, image: RecordImage): Buffer | undefined;
  /** Adds a commit of an increment. */
  commit(commit: Commit): Buffer | undefined;
  /** Adds a batch of an increment by batches. */
  batch(batch: BackupBatch): Buffer | undefined;
  /** Adds a raw row. Formats for other programs leave them out. */
  row(row: TableRow): Buffer | undefined;
  /** The bytes that were collected and not returned yet. Called after each collection. */
  flush(): Buffer | undefined;
}

type BackupBatch = Omit<PortableBatch, 'commits'> & { commits: readonly Commit[] };

interface BackupScope {
  collections: readonly CollectionInfo[];
  /** The only collections to back up; absent: all. */
  only: readonly string[] | undefined;
  /** For an increment: the chain hash at the commit it builds on. */
  sinceChain: Hash64 | undefined;
  /** By batches: the last commit in the backup. */
  commit: DatabaseState | undefined;
}
