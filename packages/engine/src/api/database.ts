import { checkCollectionName, refuse } from '../value/documents.js';
import type { Transaction } from '../write/transactions.js';
import { EmbeddedCollection, collectionPort } from './embedded-collection.js';
import { UsageError } from '@millrace/kit/errors';
import {
  compileIndex,
  definitionOf,
  type DeclaredIndex,
  type IndexDefinition,
} from '../format/entries.js';
import { realpathSync } from 'node:fs';
import { basename, join } from 'node:path';
import { systemClock, type Clock } from '@millrace/kit/clock';
import {
  memoryFiles,
  memoryName,
  temporaryDirectory,
  unlinkFiles,
} from '../storage/file/memory-files.js';
import { silentLog, type Log } from '@millrace/kit/log';
import { systemRandom, type Random } from '@millrace/kit/random';
import { backup, type BackupOptions } from '../maintain/backup/backup.js';
import { LogArchiver, type LogArchiveOptions } from '../maintain/backup/archiver.js';
import { backupBytes, writeBackup, type WrittenBackup } from '../maintain/backup/file.js';
import type { BackupHeader, BackupPart } from '../maintain/backup/frames.js';
import { Bulk } from '../write/bulk.js';
import { BulkByFilter } from '../write/bulk-filter.js';
import { type IndexInfo, Core, refusePromise } from '../core/core.js';
import { CommitTarget } from '../write/requests.js';
import {
  Compactor,
  type Compacted,
  type CompactOptions,
  type CompactProgress,
} from '../maintain/compact/compact.js';
import { loadDeclarations, CatalogChanges } from '../write/catalog-changes.js';
import { ExpirySweeper } from '../write/expiry.js';
import { openFormat } from '../maintain/upgrade/format.js';
import type { Hash64 } from '../value/bytes.js';
import { allDeclared, buildIndexes, reconcileIndexes } from '../write/index-build.js';
import { defaultRetention, LogTrimmer, type LogRetention } from '../core/log-trim.js';
import { SearchMerges } from '../core/search-merges.js';
import { Queries, Reads } from '../write/reads.js';
import {
  readSnapshot,
  type ReadSnapshot,
  readRows,
  type RowReader,
} from '../core/read-snapshot.js';
import { cutTail } from '../maintain/replica/cut-tail.js';
import { fillStore } from '../maintain/replica/apply-commit.js';
import { retryInTurn, runTransaction } from '../write/run-transaction.js';
import { TransactionRegistry, type BeginOptions } from '../write/transaction-registry.js';
import { checkMigrations, type Migration } from '../value/migrations.js';
import { MigrationRun } from '../write/migrations.js';
import { Schemas } from '../write/schemas.js';
import type { SchemaInput, SchemaOutput, StandardSchema } from '../core/schema.js';
import {
  currentStore,
  makeDirectory,
  nextStore,
  noCurrent,
  pointTo,
  removeOtherStores,
  removeStore,
  storeToOpen,
  DirectoryLock,
} from '../storage/file/directory.js';
import { nodeFiles, type FileLayer } from '../storage/file/files.js';
import { logDirectoryOf, OpenedLog } from '../storage/store.js';
import { checkStoreFile, hasBytes } from '../storage/file/store-file.js';
import { Tables } from '../storage/file/tables.js';
import { runInScope } from './collection-port.js';
import type { VerifyReport } from '../maintain/verify/records.js';
import { verifyCore } from '../maintain/verify/verify.js';
import type { WatchChange } from '../watch/message.js';
import type { Watch } from '../watch/watch.js';
import { Watches, type WatchOptions } from '../watch/watches.js';
import { Writes } from '../write/writes.js';

/** A transaction with collections whose calls all belong to it. */
export type DatabaseTransaction = Transaction & TransactionCollections;

interface TransactionCollections {
  collection<T extends object, In extends object>(
    of: EmbeddedCollection<T, In>,
  ): EmbeddedCollection<T, In>;
  collection<T extends object = Record<string, unknown>>(name: string): EmbeddedCollection<T>;
}

function withCollections(
  port: ReturnType<typeof collectionPort>,
  transaction: Transaction,
): DatabaseTransaction {
  const collection = (of: EmbeddedCollection<object> | string) => {
    if (typeof of !== 'string') return of.within(transaction, port.owner);
    checkCollectionName(of);
    return new EmbeddedCollection(port, of, { transaction });
  };
  return Object.assign(transaction, { collection } as TransactionCollections);
}

const maxTtlMs = 100 * 366 * 86_400_000;

/** Options of one collection for `open`. Collections not named here are created on first write. */
export interface CollectionOptions {
  indexes?: readonly DeclaredIndex[];
  /** TTL of records written without one; 0 or absent: they never expire. */
  defaultTtlMs?: number;
  /** Steps of the documents from one version to the next; reads give the last one. */
  migrations?: readonly Migration[];
}

interface CollectionDeclarations {
  collections?: Readonly<Record<string, CollectionOptions>>;
  /** Indexes of any collections, beside those in `collections`. */
  indexes?: readonly (DeclaredIndex & { collection: string })[];
}

/** The collections that the options of `open` declare, checked. */
function declaredCollections({
  collections = {},
  indexes = [],
}: CollectionDeclarations): [string, CollectionOptions][] {
  const declared = new Map(Object.entries(collections));
  for (const { collection, ...definition } of indexes) {
    const options = declared.get(collection);
    const all = [...(options?.indexes ?? []), definition];
    declared.set(collection, { ...options, indexes: all });
  }
  for (const [name, options] of declared) checkDeclared(name, options);
  return [...declared];
}

function checkDeclared(name: string, options: CollectionOptions): void {
  const { indexes = [], defaultTtlMs = 0, migrations } = options;
  checkCollectionName(name);
  if (migrations) checkMigrations(name, migrations);
  for (const declared of indexes) compileIndex(definitionOf(declared));
  if (defaultTtlMs >= 0 && defaultTtlMs <= maxTtlMs) return;
  throw new UsageError(
    `The default_ttl_ms of "${name}" is 0 (records never expire) to 100 years, ` +
      `not ${defaultTtlMs}.`,
  );
}

export interface OpenOptions extends CollectionDeclarations {
  /**
   * `strict` (default; alias `full`): a write resolves when it is on disk. `relaxed`: it resolves
   * when it is applied; a crash may lose the last commits, but never part of a commit.
   */
  durability?: 'strict' | 'full' | 'relaxed';
  /** How much of the change log to retain. Default: 24 h and 1 GiB. */
  logRetention?: Partial<LogRetention>;
  /** Archives the change log to a directory, for point-in-time restore. */
  logArchive?: LogArchiveOptions | undefined;
  /** False: refuse data of an older format instead of backing it up and upgrading it. */
  upgrade?: boolean | undefined;
  /** Whether the opened file refuses local commits: see `Core.sealed`. */
  seal?: (core: Core) => (() => Error) | undefined;
  clock?: Clock;
  random?: Random;
  log?: Log;
  /** The file operations of the log, for tests that make them fail. */
  files?: FileLayer;
  /** Sizes of the log files, for tests. */
  logFiles?: { segmentBytes: number };
}

/** The position of the change log. */
export interface LogPosition {
  /** The last commit that is on disk. */
  readonly seq: number;
  /** The oldest commit that the log still holds; `seq + 1` when it holds none. */
  readonly oldestSeq: number;
  /** The hash chain after commit `seq`: two logs that share it have the same history. */
  readonly chainHash: Hash64;
}

/** A collection with its indexes, as `collections()` lists it. */
export interface CollectionSummary {
  name: string;
  records: number;
  indexes: IndexSummary[];
}

export interface IndexSummary extends IndexDefinition {
  /** Its fields with commas between. */
  name: string;
  state: string;
}

function summaryOf({ compiled, definition, state }: IndexInfo): IndexSummary {
  const { unique = false, sparse = false, kind, language = 'none', metric = 'cosine' } = definition;
  const defaults = { ...(kind === 'search' && { language }), ...(kind === 'vector' && { metric }) };
  return { name: compiled.name, ...definition, ...defaults, unique, sparse, state };
}

/** An open database. Made by `open`. */
export class Database {
  readonly reads: Reads;
  readonly writes: Writes;
  readonly bulk: Bulk;
  readonly bulkByFilter: BulkByFilter;
  readonly queries: Queries;
  readonly schemas: Schemas;
  readonly catalog: CatalogChanges;
  readonly watches: Watches;
  readonly transactions: TransactionRegistry;
  readonly #sweeper: ExpirySweeper;
  readonly #trimmer: LogTrimmer;
  readonly #compactor: Compactor;
  readonly #stop = new AbortController();
  readonly #migrations: MigrationRun;
  readonly #merges: SearchMerges;
  #building: Promise<void> = Promise.resolve();
  #reconciling: Promise<void> = Promise.resolve();
  #archiver: LogArchiver | undefined;
  readonly #retry: ReturnType<typeof retryInTurn>;
  #closing: Promise<void> | undefined;
  /** Only of a database in memory. */
  #removeFiles: (() => void) | undefined;
  readonly #port: ReturnType<typeof collectionPort>;

  private constructor(
    readonly directory: string,
    readonly core: Core,
    private readonly lock: DirectoryLock,
    retention: LogRetention,
    /** Directory of the copy that was made because this opening upgraded the data. */
    readonly upgradeBackup?: string,
  ) {
    this.reads = new Reads(core);
    this.writes = new Writes(core);
    this.queries = new Queries(core);
    this.schemas = new Schemas(core, this.queries);
    this.catalog = new CatalogChanges(core, () => this.#reconciling);
    this.bulk = new Bulk(core);
    this.bulkByFilter = new BulkByFilter(core, this.queries);
    this.watches = new Watches(core);
    this.transactions = new TransactionRegistry(core);
    this.#migrations = new MigrationRun(core, this.#stop.signal);
    this.#port = collectionPort(this);
    this.#sweeper = new ExpirySweeper(core);
    this.#trimmer = new LogTrimmer(core, retention);
    this.#retry = retryInTurn(core.clock);
    core.searchMerges = this.#merges = new SearchMerges(core, this.#stop.signal);
    this.#compactor = new Compactor(core, directory, this.#trimmer, this.#stop.signal);
  }

  static async open(directory: string, options: OpenOptions = {}): Promise<Database> {
    if (directory === memoryName) return Database.#openInMemory(options);
    const collections = declaredCollections(options);
    makeDirectory(directory, options.log);
    const home = realpathSync(directory);
    const clock = options.clock ?? systemClock;
    const lock = new DirectoryLock(home, clock);
    let tables: Tables | undefined;
    let opened: OpenedLog | undefined;
    let database: Database | undefined;
    try {
      const { name: store, isNew } = storeToOpen(home);
      if (!isNew || hasBytes(join(home, store))) checkStoreFile(join(home, store));
      tables = new Tables(join(home, store));
      if (isNew && !tables.isEmpty) throw noCurrent(home, store);
      const parts = {
        clock,
        random: options.random ?? systemRandom,
        log: options.log ?? silentLog,
        files: options.files ?? nodeFiles,
      };
      const upgradeBackup = await openFormat(tables, { ...parts, upgrade: options.upgrade });
      pointTo(home, store);
      removeOtherStores(home, store, basename(logDirectoryOf(tables)));
      opened = await OpenedLog.open(tables, { ...parts, ...options.logFiles });
      const durability = options.durability === 'relaxed' ? 'relaxed' : 'strict';
      const core = new Core(tables, opened, { ...parts, durability });
      core.sealed = options.seal?.(core);
      core.store.foldSoon();
      const retention = { ...defaultRetention, ...options.logRetention };
      database = new Database(home, core, lock, retention, upgradeBackup);
      if (core.catalog.system) await core.writer.submit(() => loadDeclarations(core));
      core.onFailed = () => loadDeclarations(core);
      core.onDeclarations = () => database!.#rebuildIndexes();
      await database.#declare(collections);
      const { logArchive } = options;
      if (logArchive) database.#archiver = await LogArchiver.open(core, logArchive);
      return database;
    } catch (error) {
      if (database) database.#stopTimers();
      await (database ? database.core.store.close() : opened?.log.close());
      await tables?.close();
      lock.release();
      throw error;
    }
  }

  static async #openInMemory(options: OpenOptions): Promise<Database> {
    const { directory, remove } = temporaryDirectory();
    try {
      const files = options.files ?? memoryFiles();
      const database = await Database.open(directory, { ...options, files });
      unlinkFiles(directory);
      database.#removeFiles = remove;
      return database;
    } catch (error) {
      remove();
      throw error;
    }
  }

  /** The collection of this name. It is created with its first record. */
  collection<T extends object = Record<string, unknown>>(name: string): EmbeddedCollection<T>;
  /** The collection of this name. The schema validates every document that is written. */
  collection<S extends StandardSchema>(
    name: string,
    schema: S,
  ): EmbeddedCollection<SchemaOutput<S>, SchemaInput<S>>;
  collection(name: string, schema?: StandardSchema): EmbeddedCollection<object> {
    checkCollectionName(name);
    return new EmbeddedCollection(this.#port, name, { schema });
  }

  /** Begins a transaction that the caller commits or rolls back. */
  async begin({
    readOnly,
    lifetimeMs,
  }: {
    readOnly?: boolean | undefined;
    lifetimeMs?: number | undefined;
  } = {}): Promise<DatabaseTransaction> {
    return withCollections(
      this.#port,
      this.transactions.begin({ readOnly, timeoutMs: lifetimeMs }),
    );
  }

  /**
   * Calls `run` with a transaction and commits its writes. On a conflict with another commit, `run`
   * is called again, by default up to ten times, so it must have no side effects that may not
   * happen twice. If `run` throws, the transaction is rolled back and the error is rethrown.
   */
  transaction<Result>(
    run: (transaction: DatabaseTransaction) => Promise<Result>,
    { tries, ...options }: BeginOptions & { tries?: number | undefined } = {},
  ): Promise<Result> {
    const begin = () => withCollections(this.#port, this.transactions.begin(options));
    const retry = this.#retry;
    return runTransaction(begin, (held) => runInScope(this, () => run(held)), { tries, retry });
  }

  /**
   * Runs `step` as one atomic job in the writer: it reads the newest state, and all its writes
   * become one commit, which may share an fsync with other jobs. It must be synchronous and without
   * side effects, because it may run twice. If it throws, nothing is written.
   */
  transact<Result>(step: (target: CommitTarget) => Result): Promise<Result> {
    return this.core.writer.submit(() => {
      const target = new CommitTarget(this.core);
      const result = step(target);
      refusePromise(result, 'transact(step)');
      target.commit.finish();
      return result;
    });
  }

  /**
   * Calls `run` with one snapshot of the database and returns its result. Reads are synchronous, so
   * `run` must be too.
   */
  read<Result>(run: (snapshot: ReadSnapshot) => Result): Result {
    return readSnapshot(this.core, run);
  }

  /** Calls `read` with one snapshot of the raw rows (see rows.ts). */
  readRows<Result>(read: (rows: RowReader) => Result): Result {
    return readRows(this.core, read);
  }

  /** The position of the change log now; a watch with `startSeq: seq + 1` continues from it. */
  get logPosition(): LogPosition {
    const { seq, oldestSeq, chain } = this.core.durable;
    return { seq, oldestSeq, chainHash: chain };
  }

  /** The collections with their record counts and indexes, by name. */
  async collections(): Promise<CollectionSummary[]> {
    const infos = this.catalog.collections().toSorted((a, b) => (a.name < b.name ? -1 : 1));
    const summaries: CollectionSummary[] = [];
    for (const { name, indexes } of infos) {
      const records = await this.collection(name).count();
      summaries.push({ name, records, indexes: indexes.map(summaryOf) });
    }
    return summaries;
  }

  indexes(): readonly IndexInfo[] {
    return this.core.catalog.indexes();
  }

  /** Resolves when no index is being built any more. */
  async indexesBuilt(): Promise<void> {
    await this.#building;
  }

  /** Resolves when all records are migrated; rejects with the first one that could not be. */
  async migrated(): Promise<void> {
    await this.#migrations.done();
  }

  /** Removes expired records now instead of within the next second. */
  async sweepExpired(): Promise<void> {
    await this.#sweeper.sweep();
  }

  /** Trims the change log to its limits now, and drops everything before `beforeSeq`. */
  async trimLog(beforeSeq = 0): Promise<void> {
    await this.#trimmer.trim(beforeSeq);
  }

  /** Follows the changes of one collection or of the whole database, a message for each commit. */
  watch<Shown = WatchChange>(options: WatchOptions<Shown> = {}): Watch<Shown> {
    return this.watches.open(options);
  }

  /** A backup of one moment while the database serves: header, data, trailer. */
  backup(options: BackupOptions = {}): AsyncGenerator<BackupPart, void, void> {
    return backup(this.core, options);
  }

  /** The bytes of a backup file of one moment. Rejects what cannot be backed up. */
  backupBytes(options: BackupOptions = {}): Promise<AsyncIterable<Buffer>> {
    return backupBytes(this.core, options);
  }

  /** Writes a backup to a file. The file appears only once the backup is complete. */
  writeBackup(file: string, options: BackupOptions = {}): Promise<WrittenBackup> {
    return writeBackup(this.core, file, options);
  }

  /** Archives all durable commits now. Does nothing without a log archive. */
  async archiveLog(): Promise<void> {
    await this.#archiver?.archive();
  }

  /** Commits that are not in the log archive yet; 0 without one. */
  get archiveLag(): number {
    return this.#archiver?.lagCommits ?? 0;
  }

  /** Trims the change log and rewrites the file while the database serves. */
  compact(options: CompactOptions = {}): Promise<Compacted> {
    return this.#compactor.run(options);
  }

  /** How far the compaction is that runs now. */
  get compaction(): CompactProgress | undefined {
    return this.#compactor.progress;
  }

  /**
   * Replaces this database by a copy of another one: the backup in `parts` becomes the current
   * store, and this `Database` is closed; call `open` again to continue. This database serves until
   * the copy is complete, and an incomplete copy changes nothing.
   */
  async giveWayTo(parts: AsyncIterable<BackupPart>, source: string): Promise<BackupHeader> {
    const { directory, core } = this;
    return this.#compactor.alone(async () => {
      const name = nextStore(currentStore(directory));
      const header = await fillStore(directory, name, parts, source, core.options);
      if (!this.isOpen) {
        removeStore(directory, name);
        throw refuse('SHUTTING_DOWN', 'The database is closed.');
      }
      this.#closing = this.#end(() => pointTo(directory, name));
      await this.#closing;
      return header;
    });
  }

  /** Rolls back every commit after `afterSeq`. The log must reach back that far. */
  async cutTail(afterSeq: number): Promise<void> {
    await cutTail(this.core, afterSeq);
    this.watches.historyCut();
  }

  /** Verifies all data, on one snapshot and while the database serves. */
  verify(): Promise<VerifyReport> {
    return verifyCore(this.core);
  }

  /** Finishes running work, then closes the files and unlocks the directory. Safe to call twice. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  get isOpen(): boolean {
    return this.#closing === undefined;
  }

  async #close(): Promise<void> {
    this.#stop.abort();
    this.#stopTimers();
    this.transactions.close();
    await this.#compactor.idle();
    await this.#end();
    this.#removeFiles?.();
  }

  /** `last` runs after the file is closed and before the directory is unlocked. */
  async #end(last?: () => void): Promise<void> {
    this.#stop.abort();
    this.#stopTimers();
    this.transactions.close();
    await this.#building;
    await this.#merges.idle();
    await this.#migrations.done().catch(() => undefined);
    await this.#archiver?.close();
    await this.core.close(refuse('SHUTTING_DOWN', 'The database is closed.'));
    try {
      last?.();
    } finally {
      this.lock.release();
    }
  }

  #stopTimers(): void {
    this.#sweeper.stop();
    this.#trimmer.stop();
    this.#archiver?.stop();
  }

  async #declare(collections: [string, CollectionOptions][]): Promise<void> {
    const declared = new Map(
      collections.map(([name, { indexes = [] }]) => [name, indexes.map(definitionOf)]),
    );
    this.catalog.settings = declared;
    await reconcileIndexes(this.core, allDeclared(this.core, declared));
    for (const [name, { defaultTtlMs }] of collections) {
      const info = this.core.catalog.find(name);
      if (info && defaultTtlMs) info.defaultTtlMs = defaultTtlMs;
    }
    for (const [name, { migrations }] of collections) {
      if (migrations && !this.core.sealed) await this.#migrations.declare(name, migrations);
    }
    this.#building = buildIndexes(this.core, this.#stop.signal);
    this.#merges.start();
    this.#migrations.start();
  }

  /** Reconciles the indexes with those declared now. New builds run after those in progress. */
  #rebuildIndexes(): void {
    const { core } = this;
    const { signal } = this.#stop;
    const reconcile = async () => {
      if (signal.aborted) return;
      await reconcileIndexes(core, allDeclared(core, this.catalog.settings));
    };
    this.#reconciling = this.#reconciling.then(reconcile).catch((error: unknown) => {
      if (!signal.aborted) core.log.error({ err: error }, 'failed to change indexes');
    });
    const before = Promise.all([this.#building, this.#reconciling]);
    this.#building = before.then(() => buildIndexes(core, signal));
  }
}
