import type {
  InsertResult,
  JobStep,
  JobStepResult,
  RecordWrite,
  RecordWriteResult,
} from '../../port/task-store.js';
import type {
  RecordKey,
  RecordKind,
  RecordPart,
  RecordQuery,
  RecordState,
  StoredRecord,
} from '../../port/stored-record.js';
import { recordAct } from './audit.js';
import type { Connections, Transaction } from '../connection/connections.js';
import type { Counters } from './counters.js';
import { purgeTasks, redriveTasks } from './dead-rows.js';
import { insertInTransaction } from './inserts.js';
import { keepQueue } from '../statements/queues.sql.js';
import * as statements from '../statements/records.sql.js';

interface StateColumns {
  kind: RecordKind;
  queue: string;
  name: string;
  state: string;
  revision: number;
  created_at: number;
}

export async function listRecords(
  connections: Connections,
  query: RecordQuery,
): Promise<StoredRecord[]> {
  const { statement, values } = statements.listRecords(query);
  const rows = await connections.query<StateColumns & { body: string }>(statement, values);
  return rows.map((row) => ({ ...toState(row), body: JSON.parse(row.body) as RecordPart }));
}

export async function listRecordStates(
  connections: Connections,
  kind: RecordKind,
  queue?: string,
): Promise<RecordState[]> {
  const values = [kind, queue ?? null];
  const rows = await connections.query<StateColumns>(statements.listRecordStates, values);
  return rows.map(toState);
}

export function writeRecord(
  connections: Connections,
  counters: Counters,
  write: RecordWrite,
): Promise<RecordWriteResult> {
  const { now, tasks = [], audit } = write;
  return connections.transact(async (transaction) => {
    const queueNo = await queueNumber(transaction, write.queue);
    if (queueNo === undefined) return { kind: 'queue_not_found' };
    const record = await put(transaction, queueNo, write);
    if (!record) return { kind: 'conflict' };
    const inserts = tasks.map((task) => ({ task, now }));
    const inserted: InsertResult[] =
      tasks.length > 0 ? await insertInTransaction(transaction, counters, inserts) : [];
    if (audit) await recordAct(transaction, { ...audit, at: now });
    return { kind: 'written', record, inserted };
  });
}

export async function deleteRecord(
  connections: Connections,
  { kind, queue, name }: RecordKey,
): Promise<boolean> {
  return (await connections.query(statements.deleteRecord, [kind, queue, name])).length > 0;
}

export function runJobStep(
  connections: Connections,
  { name, ifRevision, state, change }: JobStep,
): Promise<JobStepResult> {
  const key: RecordKey = { kind: 'job', queue: change.queue, name };
  return connections.transact(async (transaction) => {
    const queueNo = await queueNumber(transaction, change.queue);
    if (queueNo === undefined) return { kind: 'conflict' };
    const values = [key.kind, queueNo, name, ifRevision];
    const locked = await transaction.query(statements.lockRecord, values);
    if (locked.length === 0) return { kind: 'conflict' };
    const ids =
      change.action === 'redrive'
        ? await redriveTasks(transaction, queueNo, change)
        : await purgeTasks(transaction, queueNo, change);
    const write = { ...key, ifRevision, state: state(ids.length), now: change.now };
    const record = await put(transaction, queueNo, write);
    return { kind: 'done', record: record!, ids };
  });
}

/** Writes a record as it was in another store. */
export async function putRecord(transaction: Transaction, record: StoredRecord): Promise<void> {
  const { kind, queue, name, body, state, revision, createdAt } = record;
  const texts = [JSON.stringify(body), JSON.stringify(state)];
  const values = [kind, queue, name, ...texts, revision, createdAt];
  await transaction.query(statements.putRecord, values);
}

async function queueNumber(transaction: Transaction, queue: string): Promise<number | undefined> {
  const [row] = await transaction.query<{ no: number }>(keepQueue, [queue]);
  return row?.no;
}

/** Undefined: the record has another revision. */
async function put(
  transaction: Transaction,
  queueNo: number,
  { kind, queue, name, ifRevision, body, state, now }: RecordWrite,
): Promise<RecordState | undefined> {
  const statement = ifRevision === 0 ? statements.createRecord : statements.updateRecord;
  const texts = [body ? JSON.stringify(body) : null, JSON.stringify(state)];
  const values = [kind, queueNo, name, ...texts, ifRevision === 0 ? now : ifRevision];
  const [row] = await transaction.query<{ revision: number; created_at: number }>(
    statement,
    values,
  );
  if (!row) return undefined;
  return { kind, queue, name, state, revision: row.revision, createdAt: row.created_at };
}

function toState(row: StateColumns): RecordState {
  const { kind, queue, name, revision, created_at: createdAt } = row;
  const state = JSON.parse(row.state) as RecordPart;
  return { kind, queue, name, state, revision, createdAt };
}
