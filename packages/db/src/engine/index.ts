import { Database, type OpenOptions } from './database.js';

/**
 * Opens the database in a directory, which is made when it is not there.
 *
 *     const db = await open('./data', { collections: { people: { indexes: [{ fields: ['age'] }] } } });
 *     const people = db.collection<{ name: string; age: number }>('people');
 *     await people.insert({ name: 'Ada', age: 36 });
 */
export function open(directory: string, options: OpenOptions = {}): Promise<Database> {
  return Database.open(directory, options);
}

export type { Collection } from './collection.js';
export type { Patch } from './documents.js';
export type { Database, LogPosition, OpenOptions } from './database.js';
export type { CollectionOptions } from './declared-collections.js';
export type { IndexDefinition } from './index/entries.js';
export type { CommitTarget } from './commit-target.js';
export type { PutOptions, StepCollection, StepRecord } from './step-collection.js';
export type { RowReader, RowWriter } from './rows.js';
export type { DeletedRecord, StoredRecord } from './stored-record.js';
export { restore, type Restored, type RestoreOptions } from './backup/restore.js';
export { baseBackupName, type RestoreTarget } from './backup/archive.js';
export type { LogArchiveOptions } from './backup/archiver.js';
export { checkBackup, type CheckedBackup } from './backup/check.js';
export { fileBytes } from './backup/file.js';
export type { BackupOptions, BackupProgress } from './backup/backup.js';
export type { BackupFormat, BackupHeader, BackupPart, BackupTrailer } from './backup/parts.js';
export type { Compacted, CompactOptions, CompactStage } from './compact/compact.js';
export { backUpBeforeUpgrade, refuseUpgrade } from './upgrade-backup.js';
export { verify } from './verify/verify.js';
export type { Problem, VerifyReport } from './verify/report.js';
export type { LiveResult } from './watch/live.js';
export type { DatabaseTransaction } from './database-transaction.js';
export type { RemovedRecord, WatchChange, WatchMessage } from './watch/message.js';
export type { WatchOptions } from './watch/watches.js';
