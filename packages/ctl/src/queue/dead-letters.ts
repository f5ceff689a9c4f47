import type { QueueSchema } from '@millrace/contract/queue';
import { systemClock } from '@millrace/kit/clock';
import { wholeNumber } from '../base/arguments.js';
import type { Tools } from '../base/tools.js';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import { timeText } from '../render/time.js';
import type { QueueApi } from './api.js';
import { momentAgo, tasks } from './arguments.js';
import { yieldingColumn } from './yielding-column.js';

type Page = QueueSchema<'DlqPage'>;
type Groups = QueueSchema<'DlqGroups'>;
type Shows = Pick<Tools, 'terminal'>;

export interface DeadListFlags {
  errorType?: string;
  handlerRef?: string;
  from?: string;
  to?: string;
  limit?: string;
  cursor?: string;
}

const defaultLimit = 50;
const maxPerPage = 500;

export async function listDead(
  api: QueueApi,
  queue: string,
  flags: DeadListFlags,
  { terminal }: Shows,
): Promise<void> {
  const limit = wholeNumber(flags.limit, '--limit') ?? defaultLimit;
  const query = {
    error_type: flags.errorType,
    handler_ref: flags.handlerRef,
    from: momentAgo(flags.from, '--from'),
    to: momentAgo(flags.to, '--to'),
  };
  const page: Page = { tasks: [], next_cursor: flags.cursor ?? '' };
  do {
    const wanted = Math.min(maxPerPage, limit - page.tasks.length);
    if (wanted <= 0) break;
    const cursor = page.next_cursor === '' ? undefined : page.next_cursor;
    const call = { queue, query: { ...query, limit: String(wanted), cursor } };
    const { body } = await api.call('listDlq', call);
    page.tasks.push(...body.tasks);
    page.next_cursor = body.next_cursor;
  } while (page.next_cursor !== '');
  const { out, json } = terminal;
  out.write(json ? `${JSON.stringify(page, null, 2)}\n` : deadTable(page, systemClock.now(), out));
}

/** Minimum width for the messages of handlers. */
const wideColumns = 110;

export function deadTable({ tasks: dead, next_cursor: next }: Page, now: number, sheet: Sheet) {
  if (dead.length === 0) return 'No dead tasks.\n';
  const isWide = sheet.columns >= wideColumns;
  const titles = ['TASK', 'DIED', 'ATTEMPTS', 'ERROR', 'HANDLER', ...(isWide ? ['MESSAGE'] : [])];
  const columns = titles.map((title) => ({ title }));
  const rows = dead.map((task): Cell[] => {
    const { error_type: type = '', http_status: status = null } = task.last_error ?? {};
    return [
      task.id,
      timeText(Date.parse(task.dead_at ?? ''), now, sheet),
      task.total_attempts,
      { text: status === null ? type : `${type} ${status}`, tone: 'bad' },
      task.handler_ref,
      ...(isWide ? [task.last_error?.message ?? ''] : []),
    ];
  });
  const fitting = yieldingColumn(isWide ? 'MESSAGE' : 'HANDLER', columns, rows, sheet);
  const more = next === '' ? '' : `There are more. Continue with --cursor ${next}\n`;
  return renderTable(columns, fitting, sheet) + more;
}

export async function showGroups(api: QueueApi, queue: string, { terminal }: Shows): Promise<void> {
  const { body } = await api.call('listDlqGroups', { queue });
  const { out, json } = terminal;
  out.write(
    json ? `${JSON.stringify(body, null, 2)}\n` : groupsTable(body, systemClock.now(), out),
  );
}

export function groupsTable({ groups }: Groups, now: number, sheet: Sheet): string {
  if (groups.length === 0) return 'No dead tasks.\n';
  const titles = ['TASKS', 'ERROR', 'HTTP', 'HANDLER', 'FIRST', 'LAST', 'EXAMPLE'];
  const columns = titles.map((title) => ({ title }));
  const rows = groups.map((group): Cell[] => [
    group.count,
    { text: group.error_type, tone: 'bad' },
    group.http_status === null ? '-' : String(group.http_status),
    group.handler_ref,
    timeText(Date.parse(group.first_seen), now, sheet),
    timeText(Date.parse(group.last_seen), now, sheet),
    group.sample_id,
  ]);
  const table = renderTable(columns, yieldingColumn('HANDLER', columns, rows, sheet), sheet);
  const total = groups.reduce((sum, { count }) => sum + count, 0);
  const kinds = groups.length === 1 ? '1 group' : `${groups.length} groups`;
  return `${table}${tasks(total)} in ${kinds}.\n`;
}
