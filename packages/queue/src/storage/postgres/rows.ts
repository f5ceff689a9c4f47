import {
  hasConflict,
  nextRow,
  type Row,
  type RowBatch,
  type RowPut,
  type RowRange,
  type RowTable,
  type RowValue,
} from '../port/task-store.js';
import type { Queryable, Transaction } from './connections.js';
import { statement } from './statement.js';

interface RowColumns {
  kind: RowTable;
  queue: string;
  key: string;
  value: string;
  body?: string | null;
  revision: number;
  created_at: number;
}

const columns = 'r.kind, q.name AS queue, r.key, r.value, r.revision, r.created_at';
const from = 'FROM millrace.rows r JOIN millrace.queues q ON q.no = r.queue_no';

export async function listRows(db: Queryable, range: RowRange): Promise<Row[]> {
  const { table, queue, key, limit, isReverse, hasBodies } = range;
  const values: unknown[] = [table];
  const names = ['list_rows', ...(hasBodies ? ['whole'] : []), ...(isReverse ? ['reverse'] : [])];
  let text = `SELECT ${columns}${hasBodies ? ', r.body' : ''} ${from} WHERE r.kind = $1`;
  const add = (name: string, condition: string, value: unknown) => {
    if (value === undefined) return;
    text += ` ${condition} $${values.push(value)}`;
    names.push(name);
  };
  add('queue', 'AND q.name =', queue);
  add('key', 'AND r.key =', key);
  add('from', 'AND r.key >=', range.from);
  add('before', 'AND r.key <', range.before);
  text += ` ORDER BY q.name, r.key${isReverse ? ' DESC' : ''}`;
  add('limit', 'LIMIT', limit);
  const found = await db.query<RowColumns>(statement(names.join('_'), text), values);
  return found.map(toRow);
}

/** Queues that exist, by name; they cannot be deleted before the commit. */
const keepQueues = statement(
  'keep_queues',
  'SELECT no, name FROM millrace.queues WHERE name = ANY($1::text[]) ORDER BY no FOR KEY SHARE',
);

/** $1 tables, $2 queues, $3 keys. In one order, so that servers cannot deadlock. */
const lockRows = statement(
  'lock_rows',
  `SELECT ${columns} ${from}
  JOIN unnest($1::text[], $2::bigint[], $3::text[]) AS i(kind, queue_no, key)
    ON r.kind = i.kind AND r.queue_no = i.queue_no AND r.key = i.key
  ORDER BY r.kind, r.queue_no, r.key FOR UPDATE OF r`,
);

/** Returns the rows that still had the revision before. */
const putRows = statement(
  'put_rows',
  `INSERT INTO millrace.rows AS r (kind, queue_no, key, value, body, revision, created_at)
  SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[],
    $7::bigint[])
  ON CONFLICT (kind, queue_no, key) DO UPDATE SET value = excluded.value,
    body = coalesce(excluded.body, r.body), revision = excluded.revision
  WHERE r.revision = excluded.revision - 1
  RETURNING r.key`,
);

const removeRows = statement(
  'remove_rows',
  `DELETE FROM millrace.rows r WHERE r.kind = $1 AND r.key >= $3 AND r.key < $4
    AND r.queue_no = (SELECT no FROM millrace.queues WHERE name = $2)
  RETURNING r.key`,
);

type WrittenRows =
  { kind: 'written'; rows: Row[]; removed: number } | { kind: 'conflict' | 'queue_not_found' };

/** Puts and removes the rows of a batch. Nothing is written if it returns no rows. */
export async function writeRows(
  transaction: Transaction,
  { puts = [], removals = [], now }: RowBatch,
): Promise<WrittenRows> {
  const numbers = await lockQueues(transaction, puts);
  const isMissing = ({ queue, ifRevision }: RowPut) =>
    ifRevision !== undefined && !numbers.has(queue);
  if (puts.some(isMissing)) return { kind: 'queue_not_found' };
  const there = puts.filter(({ queue }) => numbers.has(queue));
  const before = await readForUpdate(transaction, there, numbers);
  if (there.some((put) => hasConflict(put, before.get(idOf(put))))) return { kind: 'conflict' };
  const rows = there.flatMap((put) => nextRow(put, before.get(idOf(put)), now) ?? []);
  await storeRows(transaction, rows, numbers);
  let removed = 0;
  for (const { table, queue, from: first, before: end } of removals) {
    removed += (await transaction.query(removeRows, [table, queue, first, end])).length;
  }
  return { kind: 'written', rows, removed };
}

export async function storeRows(
  transaction: Transaction,
  rows: readonly Row[],
  numbers: ReadonlyMap<string, number>,
): Promise<void> {
  if (rows.length === 0) return;
  const stored = await transaction.query(putRows, [
    rows.map(({ table }) => table),
    rows.map(({ queue }) => numbers.get(queue)),
    rows.map(({ key }) => key),
    rows.map(({ value }) => textOf(value)),
    rows.map(({ body }) => (body ? textOf(body) : null)),
    rows.map(({ revision }) => revision),
    rows.map(({ createdAt }) => createdAt),
  ]);
  // Another server created a row since it was looked for: the transaction runs again.
  if (stored.length < rows.length) {
    throw Object.assign(new Error('A row was created meanwhile'), { code: '40001' });
  }
}

/** The row if it has this revision, locked until the commit. */
export async function lockRow(
  transaction: Transaction,
  queueNo: number,
  put: RowPut,
): Promise<Row | undefined> {
  const numbers = new Map([[put.queue, queueNo]]);
  const row = (await readForUpdate(transaction, [put], numbers)).get(idOf(put));
  return hasConflict(put, row) ? undefined : row;
}

async function lockQueues(
  transaction: Transaction,
  puts: readonly RowPut[],
): Promise<Map<string, number>> {
  const names = [...new Set(puts.map(({ queue }) => queue))];
  if (names.length === 0) return new Map();
  const found = await transaction.query<{ no: number; name: string }>(keepQueues, [names]);
  return new Map(found.map(({ no, name }) => [name, no]));
}

async function readForUpdate(
  transaction: Transaction,
  puts: readonly RowPut[],
  numbers: ReadonlyMap<string, number>,
): Promise<Map<string, Row>> {
  if (puts.length === 0) return new Map();
  const found = await transaction.query<RowColumns>(lockRows, [
    puts.map(({ table }) => table),
    puts.map(({ queue }) => numbers.get(queue)),
    puts.map(({ key }) => key),
  ]);
  return new Map(found.map(toRow).map((row) => [idOf(row), row]));
}

function idOf({ table, queue, key }: Pick<Row, 'table' | 'queue' | 'key'>): string {
  return [table, queue, key].join(' ');
}

/** PostgreSQL does not store zero bytes in text; JSON escapes them. */
function textOf(value: RowValue): string {
  return JSON.stringify(value);
}

function toRow(row: RowColumns): Row {
  const { kind: table, queue, key, revision, created_at: createdAt } = row;
  const value = JSON.parse(row.value) as RowValue;
  const body = row.body ? (JSON.parse(row.body) as RowValue) : undefined;
  return { table, queue, key, value, ...(row.body && { body }), revision, createdAt };
}
