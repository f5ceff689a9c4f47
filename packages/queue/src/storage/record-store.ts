import type { AuditAct } from '../core/audit.js';
import type { InsertResult, NewTask, PurgeChange, RedriveChange } from './task-store.js';

/**
 * Small records that belong to a queue and are deleted with it: its schedules and its jobs. The
 * body is written rarely and may be large; the state is small and changes often. Every write is a
 * compare-and-set on the revision, so that several servers can share the work.
 */
export interface RecordStore {
  /** By queue and name. */
  listRecords(query: RecordQuery): Promise<StoredRecord[]>;
  /** The states of all records of a kind, without their bodies. */
  listRecordStates(kind: RecordKind): Promise<RecordState[]>;
  /** Writes a record, and in the same commit stores tasks and adds to the audit log. */
  writeRecord(write: RecordWrite): Promise<RecordWriteResult>;
  /** False if there is no such record. */
  deleteRecord(key: RecordKey): Promise<boolean>;
  /** Redrives or purges dead tasks and updates the state of the job, in one commit. */
  runJobStep(step: JobStep): Promise<JobStepResult>;
}

export type RecordKind = 'schedule' | 'job';

export interface RecordKey {
  kind: RecordKind;
  queue: string;
  name: string;
}

export type RecordQuery = Pick<RecordKey, 'kind'> & Partial<RecordKey>;

/** JSON. */
export type RecordPart = object;

export interface RecordState extends RecordKey {
  state: RecordPart;
  /** 1 for a new record, one more with each write. */
  revision: number;
  createdAt: number;
}

export interface StoredRecord extends RecordState {
  body: RecordPart;
}

export interface RecordWrite extends RecordKey {
  /** Write only if the record still has this revision; 0: only if there is none. */
  ifRevision: number;
  /** Undefined leaves it as it is; a new record needs one. */
  body?: RecordPart | undefined;
  state: RecordPart;
  tasks?: readonly NewTask[] | undefined;
  audit?: Omit<AuditAct, 'at'> | undefined;
  now: number;
}

export type RecordWriteResult =
  | { kind: 'written'; record: RecordState; inserted: InsertResult[] }
  | { kind: 'conflict' }
  | { kind: 'queue_not_found' };

export interface JobStep {
  name: string;
  ifRevision: number;
  /** The new state, given how many tasks the step changed. */
  state: (changedCount: number) => RecordPart;
  /** Not added to the audit log: the start and the end of the job are. */
  change: ({ action: 'redrive' } & RedriveChange) | ({ action: 'purge' } & PurgeChange);
}

export type JobStepResult =
  { kind: 'done'; record: RecordState; count: number } | { kind: 'conflict' };
