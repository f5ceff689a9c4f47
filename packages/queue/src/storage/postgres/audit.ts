import { type AuditAct, type AuditRecord, chainAct } from '../../core/audit.js';
import type { AuditQuery } from '../port/task-store.js';
import type { Queryable, Transaction } from './connections.js';
import { statement, type Statement } from './statement.js';
import { withoutZeros } from './tasks.js';

export interface AuditColumns {
  seq: number;
  at: number;
  principal: string;
  action: AuditRecord['action'];
  queue: string;
  selector: string | null;
  count: number | null;
  prev_hash: string;
  hash: string;
}

/**
 * Appends to the audit chain. The last step of a transaction: the head of the chain is locked for
 * all servers until the commit.
 */
export async function recordAct(transaction: Transaction, act: AuditAct): Promise<void> {
  const [head] = await transaction.query<{ seq: number; hash: string | null }>(lockAuditHead);
  const last = head!.hash === null ? undefined : { seq: head!.seq, hash: head!.hash };
  const record = chainAct(last, { ...act, principal: withoutZeros(act.principal) });
  await transaction.queryLast(addAudit, auditValues(record));
}

export function auditValues(record: AuditRecord): unknown[] {
  const { seq, at, principal, action, queue, selector, count, prevHash, hash } = record;
  const text = selector === null ? null : JSON.stringify(selector);
  return [seq, at, principal, action, queue, text, count, prevHash, hash];
}

const minPageSize = 500;

export async function readAudit(db: Queryable, query: AuditQuery): Promise<AuditRecord[]> {
  const records: AuditRecord[] = [];
  let beforeSeq = query.beforeSeq;
  for (;;) {
    const wanted = query.allowed ? Math.max(query.limit, minPageSize) : query.limit;
    const { statement, values } = auditPage({ ...query, beforeSeq }, wanted);
    const rows = await db.query<AuditColumns>(statement, values);
    for (const row of rows) {
      if (records.length >= query.limit) return records;
      if (!query.allowed || query.allowed(row.queue)) records.push(toRecord(row));
    }
    if (rows.length < wanted || records.length >= query.limit) return records;
    beforeSeq = rows.at(-1)!.seq;
  }
}

export function toRecord(row: AuditColumns): AuditRecord {
  return {
    seq: row.seq,
    at: row.at,
    principal: row.principal,
    action: row.action,
    queue: row.queue,
    selector: row.selector === null ? null : (JSON.parse(row.selector) as Record<string, unknown>),
    count: row.count,
    prevHash: row.prev_hash,
    hash: row.hash,
  };
}

/** The lock of the chain: whoever adds to it holds its head. */
export const lockAuditHead = statement(
  'lock_audit_head',
  'SELECT seq, hash FROM millrace.audit_head WHERE one FOR UPDATE',
);

export const addAudit = statement(
  'add_audit',
  `WITH head AS (UPDATE millrace.audit_head SET seq = $1, hash = $9 WHERE one)
  INSERT INTO millrace.audit (seq, at, principal, action, queue, selector, count, prev_hash, hash)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
);

const filters = {
  queue: { name: 'queue', text: 'queue =' },
  from: { name: 'from', text: 'at >=' },
  to: { name: 'to', text: 'at <' },
  beforeSeq: { name: 'before', text: 'seq <' },
} as const;

export function auditPage(
  query: AuditQuery,
  limit: number,
): { statement: Statement; values: unknown[] } {
  const values: unknown[] = [limit];
  const names = ['audit_page'];
  const where: string[] = [];
  for (const key of Object.keys(filters) as (keyof typeof filters)[]) {
    if (query[key] === undefined) continue;
    where.push(`${filters[key].text} $${values.push(query[key])}`);
    names.push(filters[key].name);
  }
  const text = `SELECT seq, at, principal, action, queue, selector, count, prev_hash, hash
    FROM millrace.audit ${where.length > 0 ? `WHERE ${where.join(' AND ')}` : ''}
    ORDER BY seq DESC LIMIT $1`;
  return { statement: statement(names.join('_'), text), values };
}
