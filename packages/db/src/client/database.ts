import { Database } from '@millrace/contract/db';
import type { DatabaseApi, TransactionOptions } from './api.js';
import type { BackupOptions } from '@millrace/engine/maintain/backup/backup';
import type { BackupPart } from '@millrace/engine/maintain/backup/frames';
import type { Compacted } from '@millrace/engine/maintain/compact/compact';
import type { CollectionSummary } from '@millrace/engine/api/database';
import { checkCollectionName } from '@millrace/engine/value/documents';
import { retryInTurn, runTransaction } from '@millrace/engine/write/run-transaction';
import type { SchemaInput, SchemaOutput, StandardSchema } from '@millrace/engine/core/schema';
import { runInScope } from '@millrace/engine/api/collection-port';
import type { WatchMessage } from '@millrace/engine/watch/message';
import { Backoff } from '@millrace/kit/backoff';
import { retryPolicy, type CallOptions, type Session } from './session.js';
import { collectionPort, RemoteCollection } from './collection.js';
import { durationOf, uint64Of } from './records.js';
import { status, type DatabaseStatus } from './status.js';
import {
  backup,
  compact,
  promote,
  RemoteCatalog,
  RemoteSchemas,
  type Promoted,
} from './catalog.js';
import { RemoteTransaction } from './transaction.js';
import { ResumingWatch, type RemoteWatchOptions } from './watch.js';

export interface BeginOptions extends CallOptions {
  readOnly?: boolean | undefined;
  /** Lifetime of the transaction. Default and maximum: 60 s. */
  lifetimeMs?: number | undefined;
  /** Takes the snapshot at this commit or later; a follower waits for it. */
  minSeq?: number | undefined;
}

/** A remote database. Created by `connect`. */
export class RemoteDatabase implements DatabaseApi {
  /** The JSON Schemas of the collections. */
  readonly schemas: RemoteSchemas;

  /** Drops and renames collections, creates and drops indexes. */
  readonly catalog: RemoteCatalog;

  readonly #inTurn: ReturnType<typeof retryInTurn>;
  readonly #port: ReturnType<typeof collectionPort>;

  constructor(private readonly session: Session) {
    this.#inTurn = retryInTurn(session.clock);
    this.#port = collectionPort(session);
    this.catalog = new RemoteCatalog(session);
    this.schemas = new RemoteSchemas(session);
  }

  /** The address it is connected to. */
  get url(): string {
    return this.session.url;
  }

  collection<T extends object = Record<string, unknown>>(name: string): RemoteCollection<T>;
  collection<S extends StandardSchema>(
    name: string,
    schema: S,
  ): RemoteCollection<SchemaOutput<S>, SchemaInput<S>>;
  collection(name: string, schema?: StandardSchema): RemoteCollection<object> {
    checkCollectionName(name);
    return new RemoteCollection(this.#port, name, { schema });
  }

  async begin(options: BeginOptions = {}): Promise<RemoteTransaction> {
    const { readOnly = false, lifetimeMs, minSeq = 0 } = options;
    const request = {
      readOnly,
      minSeq: uint64Of(minSeq, 'min_seq'),
      requestId: this.session.newRequestId(),
      ...(lifetimeMs === undefined ? {} : { timeout: durationOf(lifetimeMs, 'timeout') }),
    };
    const begun = await this.session.write(Database.method.beginTx, request, options);
    return new RemoteTransaction(this.session, this.#port, begun);
  }

  transaction<Result>(
    run: (transaction: RemoteTransaction) => Promise<Result>,
    { readOnly, timeoutMs, tries }: TransactionOptions = {},
  ): Promise<Result> {
    const backoff = new Backoff(retryPolicy, this.session.random);
    let isFirstRetry = true;
    const begin = () => this.begin({ readOnly, lifetimeMs: timeoutMs });
    return runTransaction(begin, (held) => runInScope(this.session, () => run(held)), {
      tries,
      retry: async (attempt) => {
        // Callers of this process get their turns; later retries are because of other processes.
        if (!isFirstRetry) await this.session.pause(backoff.next());
        isFirstRetry = false;
        return this.#inTurn(attempt);
      },
    });
  }

  /** Watches the whole database, which requires admin access. */
  watch(options: RemoteWatchOptions = {}): AsyncIterableIterator<WatchMessage> {
    return new ResumingWatch(this.session, '', options);
  }

  /** A consistent online backup: header, data, trailer. */
  backup(options: BackupOptions & CallOptions = {}): AsyncGenerator<BackupPart, void, void> {
    return backup(this.session, options);
  }

  /** Trims the change log and rewrites the data file, online. */
  compact(options: Parameters<typeof compact>[1] = {}): Promise<Compacted> {
    return compact(this.session, options);
  }

  /** Promotes this follower to leader. */
  promote(options: Parameters<typeof promote>[1] = {}): Promise<Promoted> {
    return promote(this.session, options);
  }

  /** The collections with their record counts and indexes, by name. */
  async collections(options: CallOptions = {}): Promise<CollectionSummary[]> {
    const { collections } = await status(this.session, { ...options, includeCollections: true });
    return collections.map(({ name, records, indexes }) => ({ name, records, indexes }));
  }

  /** The node's role, position, followers and collections. */
  status(options: Parameters<typeof status>[1] = {}): Promise<DatabaseStatus> {
    return status(this.session, options);
  }

  /** Waits for calls in flight, ends watches and closes the connection. Safe to call twice. */
  close(): Promise<void> {
    return this.session.close();
  }
}
