import type { QueueSchema } from '@millrace/contract/queue';
import { UsageError } from '@millrace/kit/errors';
import type { WireAuditRecord } from '@millrace/queue';
import type { Tools } from '../base/tools.js';
import { queueApi, type QueueApi, type QueueFlags } from './api.js';

interface Verdict {
  ok: boolean;
  records: number;
  last_seq: number | null;
  last_hash: string | null;
  /** The first record, in the order of the log, that does not match. */
  fault: { seq: number; message: string } | null;
}

export async function verifyAudit(
  flags: QueueFlags & { data?: string },
  tools: Tools,
): Promise<void> {
  if (flags.data !== undefined && flags.url !== undefined) {
    throw new UsageError('Give --url or --data, not both.');
  }
  const verdict =
    flags.data === undefined
      ? await judge(auditRecords(queueApi(flags, tools)))
      : await judgeDirectory(flags.data);
  if (!verdict.ok) tools.exitWith(1);
  tools.terminal.show(verdict, () => verdictText(verdict, flags));
}

async function judgeDirectory(directory: string): Promise<Verdict> {
  const { withStoredAudit } = await import('./stored-audit.js');
  return withStoredAudit(directory, judge);
}

/** Reads from the newest record to the first, in constant memory. */
export async function judge(records: AsyncIterable<WireAuditRecord>): Promise<Verdict> {
  const { auditFault } = await import('@millrace/queue');
  let later: WireAuditRecord | undefined;
  let fault: Verdict['fault'] = null;
  const verdict = { records: 0, last_seq: null as number | null, last_hash: null as string | null };
  const compare = (record: WireAuditRecord | undefined) => {
    const message = later && auditFault(record, later);
    if (later && message !== undefined) fault = { seq: later.seq, message };
  };
  for await (const record of records) {
    if (verdict.records === 0) [verdict.last_seq, verdict.last_hash] = [record.seq, record.hash];
    verdict.records++;
    compare(record);
    later = record;
  }
  compare(undefined);
  return { ok: fault === null, ...verdict, fault };
}

function verdictText(verdict: Verdict, { data }: { data?: string }): string {
  const { ok, records, last_hash: last, fault } = verdict;
  const amount = records === 1 ? '1 record' : `${records} records`;
  if (ok && last === null) return 'The audit log is empty.\n';
  if (ok) return `The audit log is intact: ${amount}, the last with the hash\n${last}\n`;
  const isGap = /stands where/.test(fault!.message);
  // A caller who may not see all records sees gaps that are none.
  const hint =
    isGap && data === undefined
      ? ' A token that is not admin of every queue sees gaps. Use one with the grant *:admin.\n'
      : '\n';
  return `The audit log is broken. ${fault!.message}${hint}`;
}

const maxPerPage = '500';

/** Records of the log, newest first, page by page. */
async function* auditRecords(api: QueueApi): AsyncGenerator<QueueSchema<'AuditRecord'>> {
  let cursor: string | undefined;
  do {
    const call = { query: { limit: maxPerPage, cursor } };
    const { body }: { body: QueueSchema<'AuditPage'> } = await api.call('listAudit', call);
    yield* body.records;
    cursor = body.next_cursor;
  } while (cursor !== '');
}
