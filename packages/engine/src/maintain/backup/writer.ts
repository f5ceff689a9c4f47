import type { CollectionInfo } from '../../core/catalog.js';
import type { Commit } from '../../format/changes.js';
import type { Hash64 } from '../../value/hash.js';
import type { RecordImage } from '../../format/record.js';
import type { TableRow } from '../../storage/file/tables.js';

/**
 * Encodes the data of a backup in one format. Returned bytes are written to the backup as they are.
 */
export interface BackupWriter {
  begin(scope: BackupScope): Buffer | undefined;
  /** Adds a record. Returns bytes when enough were collected. */
  record(collection: CollectionInfo, image: RecordImage): Buffer | undefined;
  /** Adds a commit of an increment. */
  commit(commit: Commit): Buffer | undefined;
  /** Adds a raw row. Formats for other programs leave them out. */
  row(row: TableRow): Buffer | undefined;
  /** The bytes that were collected and not returned yet. Called after each collection. */
  flush(): Buffer | undefined;
}

export interface BackupScope {
  collections: readonly CollectionInfo[];
  /** The only collections to back up; absent: all. */
  only: readonly string[] | undefined;
  /** For an increment: the chain hash at the commit it builds on. */
  sinceChain: Hash64 | undefined;
}
