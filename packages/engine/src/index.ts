import { Database, type OpenOptions } from './api/database.js';

/**
 * Opens the database in a directory, which is made when it is not there. `:memory:` opens an empty
 * one in memory, for tests.
 *
 *     const db = await open('./data', { collections: { people: { indexes: [{ fields: ['age'] }] } } });
 *     const people = db.collection<{ name: string; age: number }>('people');
 *     await people.insert({ name: 'Ada', age: 36 });
 */
export function open(directory: string, options: OpenOptions = {}): Promise<Database> {
  return Database.open(directory, options);
}

export type { EmbeddedCollection as Collection } from './api/embedded-collection.js';
export { date, type Patch } from './value/documents.js';
export type { Update } from './query/typed-update.js';
export type {
  Database,
  LogPosition,
  OpenOptions,
  CollectionOptions,
  CollectionSummary,
  IndexSummary,
  DatabaseTransaction,
} from './api/database.js';
export type { DeclaredIndex, IndexDefinition, SearchDefinition } from './format/entries.js';
export type { SearchQuery } from './query/query.js';
export type { CommitTarget, PutOptions, StepCollection, StepRecord } from './write/requests.js';
export type { Migration } from './value/migrations.js';
export type { RowReader, RowWriter } from './core/read-snapshot.js';
export type { DeletedRecord, StoredRecord } from './format/record.js';
export { restore, type Restored, type RestoreOptions } from './maintain/backup/restore.js';
export {
  baseBackupName,
  logBackupName,
  newestBackup,
  type RestoreTarget,
  type LogArchiveOptions,
} from './maintain/backup/archiver.js';
export { checkBackup, whyNotAfter, type CheckedBackup } from './maintain/backup/check.js';
export { fileBytes } from './maintain/backup/file.js';
export type { BackupOptions, BackupProgress } from './maintain/backup/backup.js';
export type {
  BackupFormat,
  BackupHeader,
  BackupPart,
  BackupTrailer,
} from './maintain/backup/frames.js';
export type { Compacted, CompactOptions, CompactStage } from './maintain/compact/compact.js';
export { backUpBeforeUpgrade, refuseUpgrade } from './maintain/upgrade/upgrade-backup.js';
export { verify } from './maintain/verify/verify.js';
export type { Problem, VerifyReport } from './maintain/verify/records.js';
export type { LiveResult } from './watch/live.js';
export type { RemovedRecord, WatchChange, WatchMessage } from './watch/message.js';
export type { WatchOptions } from './watch/watches.js';
