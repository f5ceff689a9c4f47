import type { QueueSchema } from '@millrace/contract/queue';
import type { ReportResult, TaskReport } from '../delivery/index.js';
import type { Queue } from '../core/queue.js';
import type { QueueContext } from './base/context.js';
import { toEnvelope } from './base/envelope.js';
import { requireQueue, taskNotFound } from './base/find.js';
import { leaseLost } from './settle-task.js';
import { resultText } from './complete-task.js';
import { rejected } from './submit-batch.js';

type Item = QueueSchema<'SettleItem'>;
type ItemResult = QueueSchema<'SettleItemResult'>;

/** Settles many tasks of a queue; a result for each, in order, also for malformed items. */
export async function settleTasks(
  context: QueueContext,
  { queue: name, body }: { queue: string; body: unknown },
): Promise<ItemResult[]> {
  const queue = await requireQueue(context, name);
  const { checks } = context;
  const { items } = checks.settle.read(body);
  const results: ItemResult[] = [];
  const reports: { index: number; id: string; report: TaskReport }[] = [];
  items.forEach((given, index) => {
    try {
      const item = checks.settleItem.read(given);
      reports.push({ index, id: item.id, report: toReport(item) });
    } catch (error) {
      results[index] = rejected(index, error);
    }
  });
  const settled = await context.delivery.settleAll(
    queue,
    reports.map(({ report }) => report),
  );
  reports.forEach(({ index, id }, i) => {
    results[index] = toItemResult(id, index, settled[i]!, queue);
  });
  return results;
}

function toReport(item: Item): TaskReport {
  const { id, lease_token: token, outcome, result, ...failure } = item;
  const task = { id: id.toUpperCase(), token };
  return outcome === 'complete'
    ? { ...task, outcome, result: resultText(result) }
    : { ...task, outcome, failure };
}

function toItemResult(id: string, index: number, result: ReportResult, queue: Queue): ItemResult {
  if (result === 'not_found') return rejected(index, taskNotFound(id));
  if (result === 'cancelled' || result === 'lease_lost') {
    return rejected(index, leaseLost(id, result));
  }
  return { index, status: 200, envelope: toEnvelope(result, queue) };
}
