import type { RowReader } from '@millrace/engine';
import type {
  RecordKey,
  RecordKind,
  RecordPart,
  RecordQuery,
  RecordState,
  StoredRecord,
} from '../port/stored-record.js';
import type { JobStep, JobStepResult, RecordWrite, RecordWriteResult } from '../port/task-store.js';
import { purgeTasks, redriveTasks } from './dead-rows.js';
import { insertTask } from './inserts.js';
import { after, kinds, queueKey, type Kind } from './keys.js';
import { encodeJson, readQueue } from './queue-rows.js';
import type { Step } from './step.js';

interface StateRow {
  /** The key has only its number. */
  queue: string;
  state: RecordPart;
  revision: number;
  createdAt: number;
}

/** Part of the key: never change a number. */
const kindNumbers: Readonly<Record<RecordKind, number>> = { schedule: 1, job: 2 };

export function list(rows: RowReader, query: RecordQuery): StoredRecord[] {
  return listStates(rows, query).map((record) => {
    const { number } = readQueue(rows, record.queue)!;
    const bytes = rows.get(recordKey(kinds.record, number, record.kind, record.name));
    if (!bytes) throw new Error(`A ${record.kind} has no body: ${record.name}`);
    return { ...record, body: JSON.parse(bytes.toString()) as RecordPart };
  });
}

export function listStates(rows: RowReader, query: RecordQuery): RecordState[] {
  const { kind, queue, name, after: previous, limit = Infinity } = query;
  const number = queue === undefined ? undefined : readQueue(rows, queue)?.number;
  if (queue !== undefined && number === undefined) return [];
  const start =
    number === undefined
      ? Buffer.of(kinds.recordState)
      : recordKey(kinds.recordState, number, kind, name ?? '');
  const found: RecordState[] = [];
  const from =
    previous === undefined ? start : Buffer.concat([start, Buffer.from(`${previous}\0`)]);
  for (const { key, value } of rows.range({ start: from, end: after(start) })) {
    if (found.length >= limit) break;
    const shown = key.toString('utf8', 6);
    if (key[5] !== kindNumbers[kind] || (name !== undefined && shown !== name)) continue;
    found.push({ kind, name: shown, ...(JSON.parse(value.toString()) as StateRow) });
  }
  // Keys are in the order of the queues' numbers.
  return found.toSorted((a, b) => (a.queue < b.queue ? -1 : a.queue > b.queue ? 1 : 0));
}

export function write(step: Step, request: RecordWrite): RecordWriteResult {
  const queue = step.queue(request.queue);
  if (!queue) return { kind: 'queue_not_found' };
  const record = put(step, request, request.state);
  if (!record) return { kind: 'conflict' };
  const { now, audit } = request;
  const inserted = (request.tasks ?? []).map((task) => insertTask(step, task, now));
  if (audit) step.record({ ...audit, at: now });
  return { kind: 'written', record, inserted };
}

export function runJobStep(step: Step, { change, ...job }: JobStep): JobStepResult {
  const key: RecordKey = { kind: 'job', queue: change.queue, name: job.name };
  const { ifRevision } = job;
  if (!step.queue(change.queue) || revisionOf(step, key) !== ifRevision)
    return { kind: 'conflict' };
  const ids = change.action === 'redrive' ? redriveTasks(step, change) : purgeTasks(step, change);
  const state = job.state(ids.length);
  const record = put(step, { ...key, ifRevision, now: change.now, body: undefined }, state)!;
  return { kind: 'done', record, ids };
}

export function remove(step: Step, key: RecordKey): boolean {
  const number = step.queue(key.queue)?.stored.number;
  if (number === undefined || revisionOf(step, key) === 0) return false;
  for (const kind of [kinds.record, kinds.recordState]) {
    step.rows.remove(recordKey(kind, number, key.kind, key.name));
  }
  return true;
}

/** All records of a queue. */
export function recordsOf(rows: RowReader, queue: string): StoredRecord[] {
  const allKinds = Object.keys(kindNumbers) as RecordKind[];
  return allKinds.flatMap((kind) => list(rows, { kind, queue }));
}

/** Writes a record as it was in another store. */
export function putRecord(step: Step, queueNumber: number, record: StoredRecord): void {
  const { kind, name, queue, state, revision, createdAt } = record;
  const row: StateRow = { queue, state, revision, createdAt };
  step.rows.put(recordKey(kinds.record, queueNumber, kind, name), encodeJson(record.body));
  step.rows.put(recordKey(kinds.recordState, queueNumber, kind, name), encodeJson(row));
}

/** And the history. */
export function removeRecordsOf(step: Step, queue: number): void {
  for (const kind of [kinds.record, kinds.recordState, kinds.history, kinds.historyTotals]) {
    const start = queueKey(kind, queue);
    const keys = Array.from(step.rows.range({ start, end: after(start) }), ({ key }) => key);
    for (const key of keys) step.rows.remove(key);
  }
}

/** Undefined: the record has another revision. */
function put(
  step: Step,
  { kind, queue, name, ifRevision, body, now }: Omit<RecordWrite, 'state'>,
  state: RecordPart,
): RecordState | undefined {
  const { number } = step.queue(queue)!.stored;
  const before = readState(step.rows, recordKey(kinds.recordState, number, kind, name));
  if ((before?.revision ?? 0) !== ifRevision) return undefined;
  const createdAt = before?.createdAt ?? now;
  const row: StateRow = { queue, state, revision: ifRevision + 1, createdAt };
  if (body) step.rows.put(recordKey(kinds.record, number, kind, name), encodeJson(body));
  step.rows.put(recordKey(kinds.recordState, number, kind, name), encodeJson(row));
  return { kind, name, ...row };
}

function revisionOf(step: Step, { kind, queue, name }: RecordKey): number {
  const { number } = step.queue(queue)!.stored;
  return readState(step.rows, recordKey(kinds.recordState, number, kind, name))?.revision ?? 0;
}

function readState(rows: RowReader, key: Buffer): StateRow | undefined {
  const bytes = rows.get(key);
  return bytes && (JSON.parse(bytes.toString()) as StateRow);
}

function recordKey(row: Kind, queue: number, kind: RecordKind, name: string): Buffer {
  return Buffer.concat([queueKey(row, queue), Buffer.of(kindNumbers[kind]), Buffer.from(name)]);
}
