import type { CollectionInfo } from '../../core/catalog.js';
import type { Commit } from '../../format/changes.js';
import type { Hash64 } from '../../value/hash.js';
import type { RecordImage } from '../../format/record.js';
import type { TableRow } from '../../storage/file/tables.js';

/** Makes the data of a backup in one format. What comes back goes into the data as it is. */
export interface BackupWriter {
  begin(scope: BackupScope): Buffer | undefined;
  /** Takes a record. Bytes come back when enough has gathered. */
  record(collection: CollectionInfo, image: RecordImage): Buffer | undefined;
  /** Takes a commit of an increment. */
  commit(commit: Commit): Buffer | undefined;
  /** Takes a row beside the records. What is made to be read elsewhere leaves them out. */
  row(row: TableRow): Buffer | undefined;
  /** What has gathered and not come back yet. Called after each collection. */
  flush(): Buffer | undefined;
}

export interface BackupScope {
  collections: readonly CollectionInfo[];
  /** The only collections asked for; absent: all. */
  only: readonly string[] | undefined;
  /** For an increment: the chain at the commit it builds on. */
  sinceChain: Hash64 | undefined;
}
