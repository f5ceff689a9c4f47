/**
 * Small records that belong to a queue and are deleted with it: its schedules and its jobs. The
 * body is written rarely and may be large; the state is small and changes often. Every write is a
 * compare-and-set on the revision, so that several servers can share the work.
 */
export interface StoredRecord extends RecordState {
  body: RecordPart;
}

export type RecordKind = 'schedule' | 'job';

export interface RecordKey {
  kind: RecordKind;
  queue: string;
  name: string;
}

export interface RecordQuery extends Partial<RecordKey> {
  kind: RecordKind;
  /** Only names after this one; needs a queue. */
  after?: string | undefined;
  limit?: number | undefined;
}

/** JSON. */
export type RecordPart = object;

export interface RecordState extends RecordKey {
  state: RecordPart;
  /** 1 for a new record, one more with each write. */
  revision: number;
  createdAt: number;
}
