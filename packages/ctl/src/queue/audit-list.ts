import type { QueueSchema } from '@millrace/contract/queue';
import { systemClock } from '@millrace/kit/clock';
import { wholeNumber } from '../base/arguments.js';
import type { Tools } from '../base/tools.js';
import { renderTable, type Sheet } from '../render/table.js';
import { timeText } from '../render/time.js';
import type { QueueApi } from './api.js';
import { momentAgo } from './arguments.js';

type AuditPage = QueueSchema<'AuditPage'>;
type AuditRecord = QueueSchema<'AuditRecord'>;

export interface AuditListFlags {
  queue?: string;
  from?: string;
  to?: string;
  limit?: string;
}

const defaultLimit = 50;
const maxPerPage = 500;

export async function listAudit(
  api: QueueApi,
  flags: AuditListFlags,
  { terminal }: Pick<Tools, 'terminal'>,
): Promise<void> {
  const limit = wholeNumber(flags.limit, '--limit') ?? defaultLimit;
  const query = {
    queue: flags.queue,
    from: momentAgo(flags.from, '--from'),
    to: momentAgo(flags.to, '--to'),
  };
  const records: AuditRecord[] = [];
  for await (const record of auditRecords(api, query, Math.min(maxPerPage, limit))) {
    if (records.length === limit) break;
    records.push(record);
  }
  const { out, json } = terminal;
  out.write(
    json
      ? `${JSON.stringify({ records }, null, 2)}\n`
      : auditTable(records, systemClock.now(), out),
  );
}

/** Records of the log, newest first, page by page. */
export async function* auditRecords(
  api: QueueApi,
  query: Readonly<Record<string, string | undefined>> = {},
  perPage = maxPerPage,
): AsyncGenerator<AuditRecord> {
  let cursor: string | undefined;
  do {
    const call = { query: { ...query, limit: String(Math.max(1, perPage)), cursor } };
    const { body }: { body: AuditPage } = await api.call('listAudit', call);
    yield* body.records;
    cursor = body.next_cursor;
  } while (cursor !== '');
}

/** Minimum width for the exact time. */
const wideColumns = 110;

export function auditTable(records: readonly AuditRecord[], now: number, sheet: Sheet): string {
  if (records.length === 0) return 'No audit records.\n';
  const isWide = sheet.columns >= wideColumns;
  const columns = [
    { title: 'SEQ' },
    { title: 'TIME' },
    { title: 'PRINCIPAL' },
    { title: 'ACTION' },
    { title: 'QUEUE' },
    { title: 'TASKS' },
    { title: 'SELECTION', overflow: 'wrap' as const },
  ];
  const rows = records.map(({ seq, at, principal, action, queue, count, selector }) => [
    seq,
    isWide && !sheet.utc ? at.slice(0, 19).replace('T', ' ') : timeText(Date.parse(at), now, sheet),
    principal,
    action,
    queue,
    count === null ? '' : String(count),
    selector === null ? '' : selectorText(selector),
  ]);
  return renderTable(columns, rows, sheet);
}

/** `error_type=HTTP_5XX rate_per_second=50`, `3 ids`, `all`. */
function selectorText({ ids, filter, ...rest }: Record<string, unknown>): string {
  const pairs = Object.entries({ ...(filter as object | undefined), ...rest });
  const words = pairs.map(([name, value]) => `${name}=${String(value)}`);
  if (Array.isArray(ids)) words.unshift(ids.length === 1 ? String(ids[0]) : `${ids.length} ids`);
  else if (Object.keys(filter ?? {}).length === 0) words.unshift('all');
  return words.join(' ');
}
