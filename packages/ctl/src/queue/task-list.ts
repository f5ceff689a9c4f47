import type { QueueSchema } from '@millrace/contract/queue';
import { systemClock } from '@millrace/kit/clock';
import { UsageError } from '@millrace/kit/errors';
import { humanDuration } from '@millrace/kit/units';
import { durationOf, wholeNumber } from '../base/arguments.js';
import { Frame } from '../base/frame.js';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import { timeText } from '../render/time.js';
import type { Tools } from '../base/tools.js';
import type { QueueApi } from './api.js';
import { momentAgo, tasks as amount } from './arguments.js';
import { rest } from '../base/rest.js';
import { yieldingColumn } from './yielding-column.js';

type Page = QueueSchema<'TaskPage'>;
type ListedTask = QueueSchema<'ListedTask'>;

export interface TaskListFlags {
  status?: string[];
  handlerRef?: string;
  groupKey?: string;
  from?: string;
  to?: string;
  order?: string;
  limit?: string;
  cursor?: string;
  count?: boolean;
  watch?: boolean;
  interval?: string;
}

const defaultLimit = 50;
const maxPerPage = 500;
const defaultIntervalMs = 2_000;
const minIntervalMs = 100;

export async function listTasks(
  api: QueueApi,
  queue: string,
  flags: TaskListFlags,
  tools: Tools,
): Promise<void> {
  const { out, json } = tools.terminal;
  if (flags.count === true) return countTasks(api, queue, flags, tools);
  const limit = wholeNumber(flags.limit, '--limit') ?? defaultLimit;
  const read = () => readPages(api, queue, flags, limit);
  const text = (page: Page) =>
    json ? `${JSON.stringify(page, null, 2)}\n` : taskTable(page, systemClock.now(), out);
  if (flags.watch !== true) {
    out.write(text(await read()));
    return;
  }
  const intervalMs = durationOf(flags.interval, '--interval') ?? defaultIntervalMs;
  if (intervalMs < minIntervalMs) throw new UsageError('--interval must be at least 100ms.');
  const frame = new Frame(out);
  for (;;) {
    const page = await read();
    // One line for each page, so that a program can read them one by one.
    if (json) out.write(`${JSON.stringify(page)}\n`);
    else frame.draw(text(page));
    await rest(intervalMs, tools.lifecycle.interrupted);
  }
}

function queryOf(flags: TaskListFlags) {
  return {
    status: flags.status?.map((status) => status.toUpperCase()),
    handler_ref: flags.handlerRef,
    group_key: flags.groupKey,
    from: momentAgo(flags.from, '--from'),
    to: momentAgo(flags.to, '--to'),
  };
}

async function countTasks(
  api: QueueApi,
  queue: string,
  flags: TaskListFlags,
  { terminal }: Pick<Tools, 'terminal'>,
): Promise<void> {
  const { body } = await api.call('countTasks', { queue, query: queryOf(flags) });
  const about = body.is_estimate ? 'About ' : '';
  terminal.out.write(
    terminal.json ? `${JSON.stringify(body, null, 2)}\n` : `${about}${amount(body.count)}.\n`,
  );
}

/** A page of the server may be short or empty: follows its cursors up to the limit. */
async function readPages(
  api: QueueApi,
  queue: string,
  flags: TaskListFlags,
  limit: number,
): Promise<Page> {
  const page: Page = { tasks: [], next_cursor: flags.cursor ?? '' };
  do {
    const wanted = Math.min(maxPerPage, limit - page.tasks.length);
    if (wanted <= 0) break;
    const cursor = page.next_cursor === '' ? undefined : page.next_cursor;
    const query = { ...queryOf(flags), order: flags.order, limit: String(wanted), cursor };
    const { body } = await api.call('listTasks', { queue, query });
    page.tasks.push(...body.tasks);
    page.next_cursor = body.next_cursor;
  } while (page.next_cursor !== '');
  return page;
}

const tones = { PENDING: 'warn', IN_FLIGHT: 'strong', SUCCEEDED: 'ok', DEAD: 'bad' } as const;

export function taskTable({ tasks, next_cursor: next }: Page, now: number, sheet: Sheet): string {
  if (tasks.length === 0) return 'No tasks.\n';
  const titles = ['TASK', 'STATUS', 'AGE', 'ATTEMPTS', 'HANDLER', 'STATE'];
  const columns = titles.map((title) => ({ title }));
  const rows = tasks.map((task): Cell[] => [
    task.id,
    { text: task.status, tone: tones[task.status] },
    timeText(Date.parse(task.created_at), now, sheet),
    task.total_attempts,
    task.handler_ref,
    stateOf(task, now, sheet),
  ]);
  const fitting = yieldingColumn('STATE', columns, rows, sheet);
  const more = next === '' ? '' : `There are more. Continue with --cursor ${next}\n`;
  return renderTable(columns, fitting, sheet) + more;
}

const shortWaits: Readonly<Record<QueueSchema<'WaitingFor'>, string>> = {
  time: 'not due yet',
  paused: 'waits: the queue is paused',
  concurrency: 'waits for a free slot',
  rate_limit: 'waits for the rate limit',
  circuit_open: 'waits for the circuit breaker',
  group: 'waits for its group',
  dispatch: 'ready',
};

/** What a pending task waits for, or how a task ended. */
function stateOf(task: ListedTask, now: number, sheet: Sheet): string {
  if (task.status === 'PENDING') {
    if (task.waiting_for !== 'time' || task.next_attempt_at === null) {
      return shortWaits[task.waiting_for ?? 'dispatch'];
    }
    if (sheet.utc) return `due ${task.next_attempt_at}`;
    const inMs = Math.max(0, Date.parse(task.next_attempt_at) - now);
    return `due in ${humanDuration(inMs)}`;
  }
  if (task.status === 'DEAD') return `${task.dead_reason}: ${task.last_error?.message ?? ''}`;
  return '';
}
