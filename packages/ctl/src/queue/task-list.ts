import { counted, rowsOf } from '@millrace/contract/lists';
import * as queueLists from '@millrace/contract/lists/queue';
import type { QueueSchema } from '@millrace/contract/queue';
import { systemClock } from '@millrace/kit/clock';
import { momentAgo } from '../base/arguments.js';
import { refresh } from '../base/watching.js';
import { readPages } from '../base/run-operation.js';
import { shownText } from '../base/list-text.js';
import type { Sheet } from '../render/table.js';
import type { Flags, Tools } from '../base/tools.js';
import { queueApi, type QueueApi, type QueueFlags } from './api.js';

type Page = QueueSchema<'TaskPage'>;

type TaskListFlags = QueueFlags &
  Flags<'handlerRef groupKey from to order limit cursor interval', 'count watch'> & {
    status?: string[];
  };

const defaultLimit = 50;

export async function listTasks(queue: string, flags: TaskListFlags, tools: Tools): Promise<void> {
  const api = queueApi(flags, tools);
  const { out, json } = tools.terminal;
  if (flags.count === true) return countTasks(api, queue, flags, tools);
  // Checked before the first page is read.
  const query = { ...queryOf(flags), order: flags.order };
  const read = async () =>
    (await readPages(
      { member: 'tasks', limit: defaultLimit },
      { ...flags },
      async (more) => (await api.call('listTasks', { queue, query: { ...query, ...more } })).body,
    )) as unknown as Page;
  const text = (page: Page) => taskTable(page, systemClock.now(), out);
  if (flags.watch !== true) {
    const page = await read();
    tools.terminal.show(page, () => text(page));
    return;
  }
  await refresh(
    { ...(flags.interval && { interval: flags.interval }) },
    { everyMs: 2_000, isEndless: true },
    tools,
    async (frame) => {
      const page = await read();
      // One line for each page, so that a program can read them one by one.
      if (json) out.write(`${JSON.stringify(page)}\n`);
      else frame.draw(text(page));
    },
  );
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
  terminal.show(body, `${about}${counted(body.count, 'task')}.\n`);
}

/** The tasks, and what to add to the command to see more. */
function taskTable({ tasks, next_cursor: next }: Page, now: number, sheet: Sheet): string {
  return shownText(rowsOf(queueLists.tasks, tasks, queueLists.moreText(next)), now, sheet);
}
