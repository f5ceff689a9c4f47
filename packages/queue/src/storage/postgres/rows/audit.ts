import { chainAct, type AuditAct, type AuditRecord } from '../../../core/audit.js';
import type { AuditQuery } from '../../port/task-store.js';
import type { Queryable, Transaction } from '../connection/connections.js';
import { withoutZeros } from './task-columns.js';
import { addAudit, auditPage, lockAuditHead } from '../statements/audit.sql.js';

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
