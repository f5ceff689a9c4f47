import { statement, type Statement } from '../connection/statement.js';
import type { AuditQuery } from '../../port/task-store.js';

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
