import type { UpdateMode } from '../value/documents.js';
import type { Refusal } from '@millrace/kit/errors';
import type { WriteOptions } from './operations.js';
import type { RecordImage } from '../format/record.js';
import type { Transaction } from './transactions.js';

export const maxBulkOperations = 10_000;

interface Body extends WriteOptions {
  data: unknown;
}
export type Place = { id?: string | undefined; key?: string | undefined };

/** One write of a bulk: exactly one of the members is set. */
export interface BulkOperation {
  insert?: (Body & Place) | undefined;
  upsert?: (Body & { key: string; mode?: UpdateMode | undefined }) | undefined;
  update?:
    | (Body & Place & { mode?: UpdateMode | undefined; expectedRev?: number | undefined })
    | undefined;
  delete?: Place | undefined;
}

export type BulkOutcome =
  | {
      status: 'OK';
      id: string;
      key: string;
      rev: number;
      created: boolean;
      seq: number;
      /** The record after the write. Undefined in a repeated answer if it changed since. */
      record: RecordImage | undefined;
    }
  | { status: 'FAILED'; error: Refusal }
  | { status: 'NOT_RUN' };

export interface BulkOptions {
  /** Stops at the first failure. */
  ordered?: boolean | undefined;
  /** One commit or nothing. */
  atomic?: boolean | undefined;
  requestId?: string | undefined;
  transaction?: Transaction | undefined;
  /** The caller keeps no reference to the data, so it is not copied. */
  isDataOwn?: boolean | undefined;
}
