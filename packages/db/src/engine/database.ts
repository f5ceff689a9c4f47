import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock, type Clock } from '@millrace/kit/clock';
import { silentLog, type Log } from '@millrace/kit/log';
import { systemRandom, type Random } from '@millrace/kit/random';
import type { CollectionInfo, IndexInfo } from './catalog.js';
import { Collection } from './collection.js';
import { CommitTarget } from './commit-target.js';
import { Core } from './core.js';
import { checkCollectionName } from './documents.js';
import { ExpirySweeper } from './expiry.js';
import { openFormat } from './format.js';
import { buildIndexes, reconcileIndexes } from './index-build.js';
import type { IndexDefinition } from './index/entries.js';
import { defaultRetention, LogTrimmer, type LogRetention } from './log-trim.js';
import { Reads } from './reads.js';
import { refuse } from './refusal.js';
import { currentStore, makeDirectory, pointTo, removeOtherStores } from './storage/directory.js';
import { DirectoryLock } from './storage/lock.js';
import { Tables } from './storage/tables.js';
import { TransactionRegistry } from './transaction-registry.js';
import { Writes } from './writes.js';

/** What `open` needs to know of one collection. Collections not named here appear on first write. */
export interface CollectionOptions {
  indexes?: readonly IndexDefinition[];
  /** How long records live when their writer does not say; 0 or absent: for ever. */
  defaultTtlMs?: number;
}

export interface OpenOptions {
  collections?: Readonly<Record<string, CollectionOptions>>;
  /**
   * `strict` (default): a write resolves when it is on disk. `relaxed`: it resolves when it is
   * applied, and a crash may take the last moments with it, but never half a commit.
   */
  durability?: 'strict' | 'relaxed';
  /** How much of the change log to keep: 24 h and 1 GiB unless told. */
  logRetention?: Partial<LogRetention>;
  clock?: Clock;
  random?: Random;
  log?: Log;
}

/** An open database. Made by `open`. */
export class Database {
  readonly reads: Reads;
  readonly writes: Writes;
  readonly transactions: TransactionRegistry;
  readonly #sweeper: ExpirySweeper;
  readonly #trimmer: LogTrimmer;
  readonly #stop = new AbortController();
  #building: Promise<void> = Promise.resolve();
  #closing: Promise<void> | undefined;

  private constructor(
    readonly directory: string,
    readonly core: Core,
    private readonly lock: DirectoryLock,
    retention: LogRetention,
  ) {
    this.reads = new Reads(core);
    this.writes = new Writes(core);
    this.transactions = new TransactionRegistry(core);
    this.#sweeper = new ExpirySweeper(core);
    this.#trimmer = new LogTrimmer(core, retention);
  }

  static async open(directory: string, options: OpenOptions = {}): Promise<Database> {
    const collections = Object.entries(options.collections ?? {});
    for (const [name] of collections) checkCollectionName(name);
    makeDirectory(directory);
    const home = realpathSync(directory);
    const clock = options.clock ?? systemClock;
    const lock = new DirectoryLock(home, clock);
    let tables: Tables | undefined;
    try {
      const store = currentStore(home);
      removeOtherStores(home, store);
      tables = new Tables(join(home, store));
      await openFormat(tables, options.random ?? systemRandom);
      pointTo(home, store);
      const core = new Core(tables, {
        clock,
        random: options.random ?? systemRandom,
        log: options.log ?? silentLog,
        durability: options.durability ?? 'strict',
      });
      const retention = { ...defaultRetention, ...options.logRetention };
      const database = new Database(home, core, lock, retention);
      await database.#declare(collections);
      return database;
    } catch (error) {
      await tables?.close();
      lock.release();
      throw error;
    }
  }

  /** The collection of this name. It comes into being with its first record. */
  collection<T extends object = Record<string, unknown>>(name: string): Collection<T> {
    checkCollectionName(name);
    return new Collection<T>(this, name);
  }

  /**
   * Runs `step` as one atomic step in the writer: it reads the newest state, and all its writes
   * become one commit, which many other steps may share an fsync with. It must be synchronous
   * and touch nothing outside, for it may run twice. A throw leaves no trace.
   */
  transact<Result>(step: (target: CommitTarget) => Result): Promise<Result> {
    return this.core.writer.submit(() => {
      const target = new CommitTarget(this.core);
      const result = step(target);
      if (result instanceof Promise) {
        throw new TypeError('transact(step) takes a synchronous function');
      }
      target.commit.finish();
      return result;
    });
  }

  collections(): readonly CollectionInfo[] {
    return this.core.catalog.all();
  }

  indexes(): readonly IndexInfo[] {
    return this.core.catalog.indexes();
  }

  /** Resolves when no index is being built any more. */
  async indexesBuilt(): Promise<void> {
    await this.#building;
  }

  /** Removes what has expired now, rather than within the next second. */
  async sweepExpired(): Promise<void> {
    await this.#sweeper.sweep();
  }

  /** Trims the change log to its limits now, and drops everything before `beforeSeq`. */
  async trimLog(beforeSeq = 0): Promise<void> {
    await this.#trimmer.trim(beforeSeq);
  }

  /** Finishes what is under way, then lets go of the directory. Safe to call twice. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  get isOpen(): boolean {
    return this.#closing === undefined;
  }

  async #close(): Promise<void> {
    this.#stop.abort();
    this.#sweeper.stop();
    this.#trimmer.stop();
    this.transactions.close();
    await this.#building;
    await this.core.close(refuse('SHUTTING_DOWN', 'The database is closed.'));
    this.lock.release();
  }

  async #declare(collections: [string, CollectionOptions][]): Promise<void> {
    const declared = new Map(collections.map(([name, { indexes }]) => [name, indexes ?? []]));
    await reconcileIndexes(this.core, declared);
    for (const [name, { defaultTtlMs }] of collections) {
      const info = this.core.catalog.find(name);
      if (info && defaultTtlMs) info.defaultTtlMs = defaultTtlMs;
    }
    this.#building = buildIndexes(this.core, this.#stop.signal);
  }
}
