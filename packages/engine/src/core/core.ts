import { compileIndex, type CompiledIndex, type IndexDefinition } from '../format/entries.js';
import { checkCollectionName, refuse } from '../value/documents.js';
import { canonicalText, conditionText, parseFilter } from '../value/filter.js';
import { plainFilter } from '../value/plain-query.js';
import type { CollectionSchema } from './json-schema.js';
import { dirname } from 'node:path';
import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { Random } from '@millrace/kit/random';
import { StoreCodec, type Codec } from '../format/codec.js';
import { LoopTurns, type TurnKind, Slice } from './slice.js';
import { SortSpace } from '../storage/sort-space.js';
import {
  FileUse,
  decodeState,
  encodeState,
  stateRow,
  type DatabaseState,
  type Tables,
} from '../storage/file/tables.js';
import { type OpenedLog, Store } from '../storage/store.js';
import { explainStorageError } from '../storage/file/files.js';
import { SnapshotView, WriterView, type CodecOf } from '../storage/views.js';
import { Writer, type WriterOptions } from '../storage/writer.js';
import type { SearchChange } from '../format/search-pages.js';
import { Tails } from './search-tail.js';
import type { IndexRows } from './search-rows.js';
import { writeSegments, type MergeSchedule } from './search-segments.js';

/** A collection: its name, and the number that prefixes its rows. */
export interface CollectionInfo {
  id: number;
  name: string;
  indexes: IndexInfo[];
  /** TTL of records written without one; 0: they never expire. */
  defaultTtlMs: number;
  /** Validates every document that is written on this node. */
  schema: CollectionSchema | undefined;
  /** Dropped. The number stays, because the change log refers to it; hidden while empty. */
  isDropped: boolean;
}

/**
 * The collection of schemas and other declarations, one record each, so that they are replicated,
 * backed up and restored like records. Callers cannot use its name.
 */
export const systemCollection = '_catalog';

export interface IndexInfo {
  id: number;
  name: string;
  collection: string;
  definition: IndexDefinition;
  compiled: CompiledIndex;
  /** `building`: kept up to date by writes, not complete yet. `failed`: see `problem`. */
  state: 'building' | 'ready' | 'failed';
  problem: string;
  /** Some record has several entries: the index cannot give an order. */
  multi: boolean;
  /** Some entry was too long and is cut: the index cannot give an order. */
  cut: boolean;
  /** Records whose entries changed since the running part of its build began. */
  touched?: Set<string> | undefined;
}

/** The format of the catalog rows in the table `meta`. */
interface StoredCollection {
  id: number;
  name: string;
}
export interface StoredIndex {
  id: number;
  collection: string;
  definition: IndexDefinition;
  state: IndexInfo['state'];
  problem: string;
  multi: boolean;
  cut: boolean;
}

type PutMeta = (name: string, value: unknown) => void;

/** The collections and indexes. Loaded once, then served from memory. */
class Catalog {
  readonly #byName = new Map<string, CollectionInfo>();
  readonly #byId = new Map<number, CollectionInfo>();
  /** Entries whose row on disk is out of date, and those being written now. */
  readonly #unsaved = new Set<CollectionInfo | IndexInfo>();
  readonly #saving = new Set<CollectionInfo | IndexInfo>();
  #nextCollection = 1;
  #nextIndex = 1;

  load(collections: Iterable<unknown>, indexes: Iterable<unknown>): void {
    for (const stored of collections) this.addCollection(stored as StoredCollection);
    for (const stored of indexes) this.addIndex(stored as StoredIndex);
    this.#unsaved.clear();
  }

  /** The next free numbers. A failed commit does not reset them, so no number is used twice. */
  get nextCollection(): number {
    return this.#nextCollection;
  }
  get nextIndex(): number {
    return this.#nextIndex;
  }

  find(name: string): CollectionInfo | undefined {
    return this.#byName.get(name);
  }

  /** The system collection; undefined before its first record. */
  get system(): CollectionInfo | undefined {
    return this.#system;
  }
  #system: CollectionInfo | undefined;

  byId(id: number): CollectionInfo {
    const info = this.#byId.get(id);
    if (!info) throw refuse('CORRUPT', `The file holds rows of an unknown collection ${id}.`);
    return info;
  }

  all(): CollectionInfo[] {
    return [...this.#byName.values()];
  }

  /** All collections and the system collection. */
  allWithSystem(): CollectionInfo[] {
    return this.#system ? [...this.all(), this.#system] : this.all();
  }

  indexes(): IndexInfo[] {
    return this.all().flatMap((collection) => collection.indexes);
  }

  addCollection(stored: StoredCollection): CollectionInfo {
    const isSystem = stored.name === systemCollection;
    if (!isSystem) checkCollectionName(stored.name);
    const info: CollectionInfo = {
      ...stored,
      indexes: [],
      defaultTtlMs: 0,
      schema: undefined,
      isDropped: false,
    };
    if (isSystem) this.#system = info;
    else this.#byName.set(info.name, info);
    this.#byId.set(info.id, info);
    this.#nextCollection = Math.max(this.#nextCollection, info.id + 1);
    this.#unsaved.add(info);
    return info;
  }

  addIndex(stored: StoredIndex): IndexInfo {
    const info = indexInfo(stored);
    this.#byName.get(stored.collection)?.indexes.push(info);
    this.#nextIndex = Math.max(this.#nextIndex, info.id + 1);
    this.#unsaved.add(info);
    return info;
  }

  dropIndex(index: IndexInfo): void {
    const collection = this.#byName.get(index.collection);
    if (collection) collection.indexes = collection.indexes.filter((each) => each !== index);
    this.#unsaved.delete(index);
    this.#saving.delete(index);
  }

  /** Records what an entry revealed about its index; stored with the next commit. */
  noteEntry(index: IndexInfo, multi: boolean, cut: boolean): void {
    if ((!multi || index.multi) && (!cut || index.cut)) return;
    index.multi ||= multi;
    index.cut ||= cut;
    this.#unsaved.add(index);
  }

  setIndexState(index: IndexInfo, state: IndexInfo['state'], problem = ''): void {
    index.state = state;
    index.problem = problem;
    this.#unsaved.add(index);
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Resolves when the state of an index changes. */
  indexStateChanged(): Promise<void> {
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }
  readonly #waiting: (() => void)[] = [];

  /** Writes every row that is out of date. Later changes belong to the next commit. */
  saveChanges(put: PutMeta): void {
    if (this.#unsaved.size === 0) return;
    for (const info of this.#unsaved) {
      if ('definition' in info) put(indexRow(info.id), storedIndex(info));
      else put(collectionRow(info.name), { id: info.id, name: info.name });
      this.#saving.add(info);
    }
    this.#unsaved.clear();
  }

  /** The commit of the last `saveChanges` is on disk. */
  saved(): void {
    if (this.#saving.size > 0) this.#saving.clear();
  }

  /** The commit failed: its rows are written with the next one. */
  notSaved(): void {
    for (const info of this.#saving) this.#unsaved.add(info);
    this.#saving.clear();
  }
}

function collectionRow(name: string): string {
  return `collection:${name}`;
}

export function indexRow(id: number): string {
  return `index:${id}`;
}

export function sameDefinition(a: IndexDefinition, b: IndexDefinition): boolean {
  return (
    a.fields.join('\0') === b.fields.join('\0') &&
    Boolean(a.unique) === Boolean(b.unique) &&
    Boolean(a.sparse) === Boolean(b.sparse) &&
    a.collation === b.collation &&
    a.kind === b.kind &&
    a.dims === b.dims &&
    (a.metric ?? 'cosine') === (b.metric ?? 'cosine') &&
    (a.storage ?? 'float32') === (b.storage ?? 'float32') &&
    (a.language ?? 'none') === (b.language ?? 'none') &&
    weightsText(a) === weightsText(b) &&
    whereText(a) === whereText(b)
  );
}

/** The condition of a partial index; equal texts for equal conditions. */
export function whereText({ where }: IndexDefinition): string {
  if (where === undefined) return '';
  return canonicalText(conditionText(parseFilter(plainFilter(where, 'where'), 'where')));
}

/** The weights of a search index; equal texts for equal ones. */
export function weightsText({ weights = {} }: IndexDefinition): string {
  return canonicalText(weights);
}

export function storedIndex(index: IndexInfo): StoredIndex {
  const { id, collection, definition, state, problem, multi, cut } = index;
  return { id, collection, definition, state, problem, multi, cut };
}

function indexInfo(stored: StoredIndex): IndexInfo {
  const compiled = compileIndex(stored.definition);
  const name = `${stored.collection}(${compiled.name})${stored.definition.unique ? ' unique' : ''}`;
  return { ...stored, name, compiled };
}

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
  /** Retains the batches from this one on. */
  lsn: number;
  release(): void;
}

type BeforeFlush = WriterOptions<DatabaseState>['beforeFlush'];
type FlushedBatch = Parameters<BeforeFlush>[1];
type SetRow = Parameters<BeforeFlush>[2];

const shapesRow = Buffer.from('shapes');

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
  /** Codecs of collections with records that are not migrated yet, by number. */
  readonly migrating = new Map<number, Codec>();
  readonly #plainCodec = (): Codec => this.codec;
  /** Merges of search indexes: set by the database. */
  searchMerges: MergeSchedule = {
    tails: new Tails(),
    isMerging: () => false,
    wake: () => undefined,
    idle: () => Promise.resolve(),
  };
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
      beforeFlush: (state, batch, set) => this.#beforeFlush(state, batch, set),
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
    const view = new SnapshotView(this.store, this.codecs, this.visible.seq, (done) => {
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

  /**
   * Retains the log from commit `seq` and batch `lsn` on, whatever the retention is, until the pin
   * is released.
   */
  pinLog(seq: number, lsn = Infinity): LogPin {
    const pin: LogPin = { seq, lsn, release: () => void this.#logPins.delete(pin) };
    this.#logPins.add(pin);
    return pin;
  }

  /** The oldest commit that a pin retains; Infinity without pins. */
  get pinnedSeq(): number {
    let pinned = Infinity;
    for (const { seq } of this.#logPins) pinned = Math.min(pinned, seq);
    return pinned;
  }

  /** Removes log segments that are no longer needed, up to batch `lastLsn`. */
  dropSegments(lastLsn: number): void {
    const oldestSeq = Math.min(this.durable.oldestSeq, this.pinnedSeq);
    const pins = Array.from(this.#logPins, ({ lsn }) => lsn - 1);
    this.store.log?.drop(oldestSeq, Math.min(this.store.foldedLsn, lastLsn, ...pins));
  }

  /** Switches to another file with the same rows. Only while the writer is held. */
  switchTo(tables: Tables): void {
    if (!this.writer.isHeld) throw new Error('The writer is busy');
    this.store.switchTo(tables);
  }

  /** The view for reads inside a writer job. */
  view(): WriterView<DatabaseState> {
    return new WriterView(this.writer, this.codecs);
  }

  /** The codec of each collection. A snapshot keeps its own: it has records of its time. */
  get codecs(): CodecOf {
    if (this.migrating.size === 0) return this.#plainCodec;
    const held = new Map(this.migrating);
    return (collection) => held.get(collection) ?? this.codec;
  }

  /** Indexes that queries may use: values of records that are not migrated are of an old form. */
  usableIndexes({ id, indexes }: Pick<CollectionInfo, 'id' | 'indexes'>): IndexInfo[] {
    return this.migrating.has(id) ? indexes.filter((each) => each.definition.kind) : indexes;
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

  #beforeFlush(state: DatabaseState, { kind, searchChanges }: FlushedBatch, put: SetRow) {
    if (searchChanges.length > 0) this.#writeSearch(searchChanges, put);
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
    const { seq, chain } = kind === 'cut' ? state : this.durable;
    return { epoch: state.epoch, start: { firstSeq: seq + 1, chain } };
  }

  #writeSearch(changes: readonly SearchChange[], set: SetRow): void {
    const { writer, searchMerges } = this;
    const rows: IndexRows = {
      get: (table, key) => writer.get(table, key),
      range: (table, range) => writer.range(table, range),
      set,
    };
    for (const index of writeSegments(rows, changes, searchMerges)) searchMerges.wake(index);
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

/** Throws when a function that must be synchronous returns a promise. */
export function refusePromise(result: unknown, name: string): void {
  if (!(result instanceof Promise)) return;
  // It continues without its snapshot and fails; no caller can handle that rejection.
  result.catch(() => undefined);
  throw new TypeError(`${name} takes a synchronous function`);
}
