import type { QueueSchema } from '@millrace/contract/queue';
import { createHash } from 'node:crypto';

/**
 * The audit log is a hash chain: each record carries the hash of the previous one, so a changed,
 * removed or inserted record breaks every later hash.
 */
export interface AuditRecord {
  /** 1, 2, 3 and so on over the whole server, without gaps. */
  seq: number;
  at: number;
  principal: string;
  action: AuditAction;
  queue: string;
  selector: Readonly<Record<string, unknown>> | null;
  count: number | null;
  prevHash: string;
  hash: string;
}

export type AuditAction = WireAuditRecord['action'];
export type AuditAct = Omit<AuditRecord, 'seq' | 'prevHash' | 'hash'>;
export type WireAuditRecord = QueueSchema<'AuditRecord'>;

/** Previous hash of the first record. */
export const firstPrevHash = '0'.repeat(64);

/** The record that follows `last`. */
export function chainAct(
  last: Pick<AuditRecord, 'seq' | 'hash'> | undefined,
  act: AuditAct,
): AuditRecord {
  const record: AuditRecord = {
    seq: (last?.seq ?? 0) + 1,
    at: act.at,
    principal: act.principal,
    action: act.action,
    queue: act.queue,
    selector: act.selector,
    count: act.count,
    prevHash: last?.hash ?? firstPrevHash,
    hash: '',
  };
  record.hash = auditHash(auditToWire(record));
  return record;
}

/** The record as the API shows it; the hash covers this form. */
export function auditToWire(record: AuditRecord): WireAuditRecord {
  return {
    seq: record.seq,
    at: new Date(record.at).toISOString(),
    principal: record.principal,
    action: record.action,
    queue: record.queue,
    selector: record.selector,
    count: record.count,
    prev_hash: record.prevHash,
    hash: record.hash,
  };
}

/** SHA-256 over the canonical JSON of everything but `hash`, in hex. */
export function auditHash(record: Omit<WireAuditRecord, 'hash'>): string {
  const { hash: _hash, ...rest } = record as WireAuditRecord;
  return createHash('sha256').update(canonicalJson(rest)).digest('hex');
}

/** Why `record` cannot follow `last` (undefined: be the first record); undefined if it can. */
export function auditFault(
  last: Pick<WireAuditRecord, 'seq' | 'hash'> | undefined,
  record: WireAuditRecord,
): string | undefined {
  const seq = (last?.seq ?? 0) + 1;
  if (record.seq !== seq) return `Record ${record.seq} stands where ${seq} should be.`;
  if (record.prev_hash !== (last?.hash ?? firstPrevHash)) {
    return `Record ${record.seq} names another record before it than the one that is there.`;
  }
  if (record.hash !== auditHash(record)) return `Record ${record.seq} was changed.`;
  return undefined;
}

/**
 * Canonical JSON (RFC 8785): no whitespace, object keys sorted by UTF-16 code units, numbers and
 * strings as JavaScript writes them. Undefined members are omitted.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value === 'object' && value !== null) return canonicalObject(value);
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw new TypeError(`JSON has no ${value}`);
  }
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) throw new TypeError(`JSON has no ${typeof value}`);
  return text;
}

function canonicalObject(value: object): string {
  const members: string[] = [];
  const record = value as Record<string, unknown>;
  // JavaScript's default string order is the one that the RFC requires.
  for (const key of Object.keys(record).toSorted()) {
    if (record[key] === undefined) continue;
    members.push(`${JSON.stringify(key)}:${canonicalJson(record[key])}`);
  }
  return `{${members.join(',')}}`;
}
