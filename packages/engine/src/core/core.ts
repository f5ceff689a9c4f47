import { dirname } from 'node:path';
import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { Random } from '@millrace/kit/random';
import { Catalog, systemCollection, type CollectionInfo } from './catalog.js';
import { StoreCodec } from '../format/codec.js';
import { checkCollectionName } from '../value/documents.js';
import type { IndexDefinition } from '../format/entries.js';
import { LoopTurns, type TurnKind } from './loop-turns.js';
import { Slice } from './slice.js';
import { SortSpace } from '../storage/sort-space.js';
import { FileUse } from '../storage/file/file-use.js';
import type { OpenedLog } from '../storage/open-log.js';
import { decodeState, encodeState, stateRow, type DatabaseState } from '../storage/file/state.js';
import { explainStorageError } from '../storage/file/storage-error.js';
import { Store } from '../storage/store.js';
import type { Tables } from '../storage/file/tables.js';
import { SnapshotView, WriterView } from '../storage/views.js';
import { Writer } from '../storage/writer.js';

export interface CoreOptions {
  clock: Clock;
  random: Random;
  log: Log;
  /** `relaxed`: a write resolves before it is on disk. */
  durability: 'strict' | 'relaxed';
}

/** Retains the change log from `seq` on. Followers and the archive raise `seq` as they proceed. */
export interface LogPin {
  seq: number;
  release(): void;
}

const shapesRow = Buffer.from('shapes');

type Put = (table: 'meta', key: Buffer, value: Buffer) => void;

/**
 * The parts of an open database that everything else is built on: the store, its one writer, the
 * catalog of collections and indexes, and the state of the last commit.
 */
export class Core {
  readonly codec: StoreCodec;
  readonly catalog = new Catalog();
  readonly store: Store;
  readonly writer: Writer<DatabaseState>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** The state on disk, which watches and backups may deliver. */
  durable: DatabaseState;
  /** The state that readers see: ahead of `durable` only in relaxed durability. */
  visible: DatabaseState;
  readonly snapshots = new Set<SnapshotView>();
  readonly files = new FileUse();
  readonly sortSpace: SortSpace;
  /** Event-loop time shared by all queries. */
  readonly turns: LoopTurns;
  /** Set when the database is closed: the error of all reads. Runs the `onDurable` callbacks. */
  closed: Error | undefined;
  /**
   * Makes the error that refuses every local commit, also those of the expiry sweeper: set on
   * followers, and when no more commits are accepted.
   */
  sealed: (() => Error) | undefined;
  /** Called when a batch failed and its rows were discarded. */
  onFailed: () => void = () => undefined;
  /** Indexes that the system collection declares, by collection. */
  declaredIndexes: ReadonlyMap<string, readonly IndexDefinition[]> = new Map();
  /** Called after the declarations of the system collection were loaded. */
  onDeclarations: () => void = () => undefined;
  /** Called for every document that does not match the schema of its collection. */
  onSchemaViolation: (validate: 'strict' | 'warn') => void = () => undefined;
  readonly #onDurable = new Set<() => void>();
  readonly #logPins = new Set<LogPin>();
  #shapes: { bytes: Uint8Array; saved: boolean } | undefined;
  #flushingShapes: { bytes: Uint8Array; saved: boolean } | undefined;
  readonly stats = { commits: 0, batches: 0, largestBatch: 0 };

  /**
   * Without a log, batches are written directly to the file: for a new store that is being filled.
   */
  constructor(
    tables: Tables,
    opened: OpenedLog | undefined,
    readonly options: CoreOptions,
  ) {
    this.clock = options.clock;
    this.random = options.random;
    this.log = options.log;
    this.sortSpace = new SortSpace(dirname(tables.path));
    this.turns = new LoopTurns(() => this.clock.monotonic());
    this.store = new Store(tables, opened?.log, {
      clock: options.clock,
      log: options.log,
      onFolded: () => this.writer.onFolded(),
    });
    opened?.loadInto(this.store.overlay);
    // Must be read before any record: reading shapes later would overwrite the shared buffer of a
    // record that is being read in place.
    const shapes = this.store.get('meta', shapesRow);
    if (shapes) this.#shapes = { bytes: shapes, saved: true };
    this.codec = new StoreCodec({
      load: () => this.#shapes?.bytes,
      save: (bytes) => (this.#shapes = { bytes, saved: false }),
    });
    this.catalog.load(this.metaRows('collection:'), this.metaRows('index:'));
    this.writer = new Writer(this.store, {
      clock: options.clock,
      load: () => decodeState(this.store.get('meta', stateRow)),
      beforeFlush: (state, isCut, put) => this.#beforeFlush(state, isCut, put),
      onVisible: (state) => (this.visible = state),
      afterFlush: (state, jobs) => this.#afterFlush(state, jobs),
      explain: (error) => explainStorageError(error, this.tables.path),
      failed: (reason, jobs) => {
        this.catalog.notSaved();
        this.onFailed();
        this.log.error({ err: reason, jobs }, 'commit failed');
      },
      maxJobs: 1_024,
      maxBytes: 16 * 2 ** 20,
      sliceMs: 2,
      maxResolvedPerTurn: 64,
      relaxed: options.durability === 'relaxed',
    });
    this.durable = this.visible = { ...this.writer.state };
  }

  /** The time slice of a query. `check` runs after each pause and throws to cancel the query. */
  newSlice(check?: () => void): Slice {
    const { turns } = this;
    const pause = async (kind: TurnKind) => {
      await turns.wait(kind);
      check?.();
    };
    return new Slice({ monotonic: () => this.clock.monotonic(), turns, pause });
  }

  /** The file of LMDB, which may lag behind the store. */
  get tables(): Tables {
    return this.store.tables;
  }

  get state(): DatabaseState {
    return this.writer.state;
  }

  /** A consistent snapshot. Release it with `done()`. */
  snapshot(): SnapshotView {
    if (this.closed) throw this.closed;
    const endUse = this.files.begin(this.tables);
    const view = new SnapshotView(this.store, this.codec, this.visible.seq, (done) => {
      this.snapshots.delete(done);
      endUse();
    });
    this.snapshots.add(view);
    return view;
  }

  /** The encoded commit, which must be durable; undefined when the log does not have it. */
  commitRow(seq: number): Buffer | undefined {
    // A closed log returns nothing, which must not be mistaken for a trimmed log.
    if (this.closed) throw this.closed;
    return this.store.log?.read(seq);
  }

  /** Retains the log from `seq` on, whatever the retention is, until the pin is released. */
  pinLog(seq: number): LogPin {
    const pin: LogPin = { seq, release: () => void this.#logPins.delete(pin) };
    this.#logPins.add(pin);
    return pin;
  }

  /** The oldest commit that a pin retains; Infinity without pins. */
  get pinnedSeq(): number {
    let pinned = Infinity;
    for (const { seq } of this.#logPins) pinned = Math.min(pinned, seq);
    return pinned;
  }

  /** Removes log segments that are no longer needed. */
  dropSegments(): void {
    const oldestSeq = Math.min(this.durable.oldestSeq, this.pinnedSeq);
    this.store.log?.drop(oldestSeq, this.store.foldedLsn);
  }

  /** Switches to another file with the same rows. Only while the writer is held. */
  switchTo(tables: Tables): void {
    if (!this.writer.isHeld) throw new Error('The writer is busy');
    this.store.switchTo(tables);
  }

  /** The view for reads inside a writer job. */
  view(): WriterView<DatabaseState> {
    return new WriterView(this.writer, this.codec);
  }

  putMeta(name: string, value: unknown): void {
    this.writer.put('meta', Buffer.from(name), Buffer.from(JSON.stringify(value)));
  }

  metaRows(prefix: string): unknown[] {
    const start = Buffer.from(prefix);
    const end = Buffer.from(
      prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1),
    );
    const rows = this.store.range('meta', { start, end });
    return Array.from(rows, (row) => JSON.parse(row.value.toString()) as unknown);
  }

  /** The collection, created when it does not exist yet. */
  async ensureCollection(name: string): Promise<CollectionInfo> {
    const known = this.catalog.find(name);
    if (known) return known;
    checkCollectionName(name);
    return this.writer.submit(() => this.collectionNow(name));
  }

  /** As `ensureCollection`, inside a job: an earlier job may have created it. */
  collectionNow(name: string): CollectionInfo {
    const there = name === systemCollection ? this.catalog.system : this.catalog.find(name);
    if (there) return there;
    const id = Math.max(this.state.nextCollection, this.catalog.nextCollection);
    this.writer.state = { ...this.state, nextCollection: id + 1 };
    return this.catalog.addCollection({ id, name });
  }

  /** Calls `run` after every flush and at the end, until the returned function is called. */
  onDurable(run: () => void): () => void {
    this.#onDurable.add(run);
    return () => this.#onDurable.delete(run);
  }

  /** Finishes queued writes, then releases open snapshots and closes the files. */
  async close(reason: Error): Promise<void> {
    await this.writer.close(reason);
    this.closed = reason;
    for (const run of this.#onDurable) run();
    for (const view of this.snapshots) view.done(reason);
    await this.store.close();
    await this.files.settled();
    await this.tables.close();
  }

  #beforeFlush(state: DatabaseState, isCut: boolean, put: Put) {
    put('meta', stateRow, encodeState(this.#withCatalog(state)));
    // A new shape is written with the first commit after its creation, so before any record uses
    // it.
    if (this.#shapes && !this.#shapes.saved) {
      put('meta', shapesRow, Buffer.from(this.#shapes.bytes));
      this.#flushingShapes = this.#shapes;
    }
    this.catalog.saveChanges((name, value) =>
      put('meta', Buffer.from(name), Buffer.from(JSON.stringify(value))),
    );
    const { seq, chain } = isCut ? state : this.durable;
    return { epoch: state.epoch, start: { firstSeq: seq + 1, chain } };
  }

  /** A failed commit resets the state, but not the numbers that the catalog has assigned. */
  #withCatalog(state: DatabaseState): DatabaseState {
    const { nextCollection, nextIndex } = this.catalog;
    if (nextCollection <= state.nextCollection && nextIndex <= state.nextIndex) return state;
    return {
      ...state,
      nextCollection: Math.max(state.nextCollection, nextCollection),
      nextIndex: Math.max(state.nextIndex, nextIndex),
    };
  }

  #afterFlush(state: DatabaseState, jobs: number): void {
    if (this.#flushingShapes) this.#flushingShapes.saved = true;
    this.#flushingShapes = undefined;
    this.catalog.saved();
    this.stats.commits += Math.max(0, state.seq - this.durable.seq);
    this.stats.batches++;
    this.stats.largestBatch = Math.max(this.stats.largestBatch, jobs);
    this.durable = state;
    for (const run of this.#onDurable) run();
  }
}
