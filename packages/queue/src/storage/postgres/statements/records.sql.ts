import type { RecordQuery } from '../../port/stored-record.js';
import { statement, type Statement } from '../connection/statement.js';

const stateColumns = 'r.kind, q.name AS queue, r.name, r.state, r.revision, r.created_at';
const fromRecords = 'FROM millrace.records r JOIN millrace.queues q ON q.no = r.queue_no';

/** $2: the queue, or null for all. */
export const listRecordStates = statement(
  'list_record_states',
  `SELECT ${stateColumns} ${fromRecords}
  WHERE r.kind = $1 AND ($2::text IS NULL OR q.name = $2) ORDER BY q.name, r.name`,
);

export function listRecords({ kind, queue, name, after, limit }: RecordQuery): {
  statement: Statement;
  values: unknown[];
} {
  const values: unknown[] = [kind];
  const names = ['list_records'];
  const where = ['r.kind = $1'];
  if (queue !== undefined) {
    where.push(`q.name = $${values.push(queue)}`);
    names.push('queue');
  }
  if (name !== undefined) {
    where.push(`r.name = $${values.push(name)}`);
    names.push('name');
  }
  if (after !== undefined) {
    where.push(`r.name > $${values.push(after)}`);
    names.push('after');
  }
  const most = limit === undefined ? '' : ` LIMIT $${values.push(limit)}`;
  if (most !== '') names.push('limit');
  const text = `SELECT ${stateColumns}, r.body ${fromRecords}
    WHERE ${where.join(' AND ')} ORDER BY q.name, r.name${most}`;
  return { statement: statement(names.join('_'), text), values };
}

const returning = 'RETURNING revision, created_at';

/** No row: there is one already. */
export const createRecord = statement(
  'create_record',
  `INSERT INTO millrace.records (kind, queue_no, name, body, state, revision, created_at)
  VALUES ($1, $2, $3, $4, $5, 1, $6)
  ON CONFLICT (kind, queue_no, name) DO NOTHING ${returning}`,
);

/** $4: the new body, or null to leave it. No row: it has another revision. */
export const updateRecord = statement(
  'update_record',
  `UPDATE millrace.records SET body = coalesce($4, body), state = $5, revision = revision + 1
  WHERE kind = $1 AND queue_no = $2 AND name = $3 AND revision = $6 ${returning}`,
);

/** Locks the record. No row: it has another revision. */
export const lockRecord = statement(
  'lock_record',
  `SELECT revision FROM millrace.records
  WHERE kind = $1 AND queue_no = $2 AND name = $3 AND revision = $4 FOR UPDATE`,
);

/** As it was in another store. */
export const putRecord = statement(
  'put_record',
  `INSERT INTO millrace.records (kind, queue_no, name, body, state, revision, created_at)
  SELECT $1, no, $3, $4, $5, $6, $7 FROM millrace.queues WHERE name = $2`,
);

export const deleteRecord = statement(
  'delete_record',
  `DELETE FROM millrace.records WHERE kind = $1 AND name = $3
    AND queue_no = (SELECT no FROM millrace.queues WHERE name = $2)
  RETURNING name`,
);
