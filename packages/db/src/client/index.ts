import { RemoteDatabase } from './database.js';
import { Session, type ConnectOptions } from './session.js';

/**
 * Connects to a database server: `grpc://host:port`, `grpcs://host:port` with TLS, or
 * `unix:/path/db.sock`. The first call opens the connection, and a lost one is reopened.
 *
 * Several addresses, `grpc://a:5433,b:5433,c:5433` or an array, are the nodes of a cluster: writes go
 * to its leader, also after a fail-over, and reads where `prefer` says.
 *
 *     const db = await connect('grpc://127.0.0.1:5433', { key: 'id.secret' });
 *     const people = db.collection<{ name: string; age: number }>('people');
 *     await people.insert({ name: 'Ada', age: 36 });
 */
export async function connect(
  url: string | readonly string[],
  options: ConnectOptions = {},
): Promise<RemoteDatabase> {
  return new RemoteDatabase(new Session(url, options));
}

export { date } from '@millrace/engine/value/documents';
export {
  checkMigrations,
  migrated,
  migrationsCollection,
  nextState,
  versionAt,
  type Migration,
  type MigrationState,
} from '@millrace/engine/value/migrations';
export type { CollectionApi, DatabaseApi, TransactionHandle } from './api.js';
export { checkFilter, JsonText } from './records.js';
export { parseAddress, type ServerAddress, parseAddresses } from './address.js';
export type { Promoted, IndexAdvice } from './catalog.js';
export type { RemoteCollection, RemoteGet, RemoteRead, RemoteWrite } from './collection.js';
export type { BeginOptions, RemoteDatabase } from './database.js';
export { CallRefusal, type CallReason } from './failures.js';
export type { RemoteLiveQuery } from './live.js';
export type { Preference } from './router.js';
export type { CallOptions, ConnectOptions } from './session.js';
export type {
  ClusterStatus,
  CompactionStatus,
  CollectionStatus,
  DatabaseStatus,
  FollowerStatus,
  IndexStatus,
  SavedTail,
} from './status.js';
export type { RemoteTransaction } from './transaction.js';
export type { TlsOptions } from './transport.js';
export type { RemoteWatchOptions } from './watch.js';
