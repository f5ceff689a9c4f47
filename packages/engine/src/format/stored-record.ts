import type { RecordImage } from './record.js';

/** A record as the in-process API shows it. */
export interface StoredRecord<T> {
  /** A ULID: ids made later sort later. */
  id: string;
  /** The caller's own key, or "" when the record has none. */
  key: string;
  /** 1 on insert, one more with each change. */
  rev: number;
  data: T;
  createdAt: Date;
  updatedAt: Date;
  /** The commit that last changed it. */
  seq: number;
  /** When it will be removed; absent: never. */
  expiresAt?: Date;
}

/** A record that a delete removed, as it last was. */
export interface DeletedRecord<T> extends StoredRecord<T> {
  /** The commit that deleted it; 0 inside a transaction, whose commit is still to come. */
  deletedSeq: number;
}

export function toStoredRecord<T>(image: RecordImage, data: unknown = image.data): StoredRecord<T> {
  const record: StoredRecord<T> = {
    id: image.id,
    key: image.key,
    rev: image.rev,
    data: data as T,
    createdAt: new Date(image.createdAt),
    updatedAt: new Date(image.updatedAt),
    seq: image.seq,
  };
  const { expiresAt } = image;
  if (expiresAt) record.expiresAt = new Date(expiresAt);
  return record;
}
