import type { CollectionInfo } from '../../core/catalog.js';
import { decodeCommit } from '../../format/changes.js';
import type { Core } from '../../core/core.js';
import { checkCollectionName } from '../../value/documents.js';
import { durableSnapshot } from '../../core/durable-snapshot.js';
import { lineageOf } from '../../storage/file/state.js';
import type { Hash64 } from '../../value/hash.js';
import type { Slice } from '../../core/slice.js';
import { ScanWalk, type Visit } from '../../query/walk.js';
import { refuse } from '../../value/refusal.js';
import type { DatabaseState } from '../../storage/file/state.js';
import type { SnapshotView } from '../../storage/views.js';
import { compacted } from '../../watch/commit-log.js';
import { Chunks } from './chunks.js';
import { ndjsonWriter } from './ndjson.js';
import { backupVersion, type BackupFormat, type BackupHeader, type BackupPart } from './parts.js';
import { snapshotWriter } from './snapshot.js';
import type { BackupScope, BackupWriter } from './writer.js';

export interface BackupOptions {
  /** `snapshot` (default) can be restored; `ndjson` is for other programs. */
  format?: BackupFormat | undefined;
  /** Names of the collections to back up. Absent or empty: all. */
  collections?: readonly string[] | undefined;
  /** Only commits after this one: an increment on a backup with that `seq`. */
  sinceSeq?: number | undefined;
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
  const { view, state } = await durableSnapshot(core);
  // Retains later commits for a follower or an increment that continues from here.
  const pin = core.pinLog(options.sinceSeq || state.seq + 1);
  try {
    const sinceChain = sinceChainOf(core, view, state, options);
    yield { kind: 'header', header: headerOf(core, state, format, options.sinceSeq ?? 0) };
    const all = format === 'ndjson' ? core.catalog.all() : core.catalog.allWithSystem();
    const taken = all.filter(({ name }) => !only || only.includes(name));
    const writer = format === 'ndjson' ? ndjsonWriter(core) : snapshotWriter(core);
    const run = new BackupRun(core, view, writer, options.signal);
    const scope = { collections: taken, only, sinceChain };
    const { chunks } = run;
    for await (const piece of run.pieces(scope, options.sinceSeq ?? 0)) {
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
      yield* this.#commits(scope, sinceSeq);
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

  /** Yields when a pause is due, then checks that the snapshot is still open. */
  async #rest(): Promise<void> {
    if (this.#slice.due()) await this.#slice.pause();
    this.signal?.throwIfAborted();
    if (this.core.closed) throw this.core.closed;
  }
}

/** The chain hash at the commit that an increment builds on; undefined for a full backup. */
function sinceChainOf(
  core: Core,
  view: SnapshotView,
  state: DatabaseState,
  { sinceSeq = 0, fromFirst }: ArchiveOptions,
): Hash64 | undefined {
  if (sinceSeq === 0 && !fromFirst) return undefined;
  if (!Number.isSafeInteger(sinceSeq) || sinceSeq < 0 || sinceSeq > state.seq) {
    throw refuse(
      'BAD_REQUEST',
      `since_seq must be the seq of a backup of this database, which is at ${state.seq}.`,
    );
  }
  for (const _row of view.rows('rows', { limit: 1 })) {
    throw refuse(
      'BAD_REQUEST',
      'This database has rows beside its records, and the change log does not know of them: ' +
        'take a full backup instead of an increment.',
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
  state: DatabaseState,
  format: BackupFormat,
  sinceSeq: number,
): BackupHeader {
  return {
    formatVersion: backupVersion,
    seq: state.seq,
    epoch: state.epoch,
    lineageId: lineageOf(core.tables),
    createdAt: new Date(core.clock.now()),
    format,
    sinceSeq,
    chainHash: state.chain,
  };
}
