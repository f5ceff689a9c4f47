import type { Patch } from '../value/documents.js';
import type { Update } from '../query/typed-update.js';
import type { StoredRecord } from '../format/record.js';

type Body<T, In> =
  | { data: In; mode?: 'replace' | undefined; ttlMs?: number | undefined }
  | { data: Patch<T>; mode: 'merge'; ttlMs?: number | undefined }
  | { update: Update<T>; ttlMs?: number | undefined };

/** One write of a bulk. */
export type BulkOperation<T = Record<string, unknown>, In = T> =
  | {
      insert: {
        data: In;
        id?: string | undefined;
        key?: string | undefined;
        ttlMs?: number | undefined;
      };
    }
  | { upsert: { key: string } & Body<T, In> }
  | { update: ({ id: string } | { key: string }) & Body<T, In> & { expectedRev?: number } }
  | { delete: { id: string } | { key: string } };

/** The result of one write of a bulk. */
export interface BulkResult<T> {
  status: 'OK' | 'FAILED' | 'NOT_RUN';
  id: string;
  key: string;
  rev: number;
  /** True when the record was created. */
  created: boolean;
  /** The commit; 0 inside a transaction. */
  seq: number;
  /** Why it failed. */
  error?: { reason: string; message: string };
  /** Only with `returnRecords`. */
  record?: StoredRecord<T>;
}

export interface BulkWritten<T> {
  /** One for each operation, in order. */
  results: BulkResult<T>[];
  /** The last commit; 0 when nothing was committed. */
  seq: number;
}
