import { systemClock } from '@millrace/kit/clock';
import { humanDuration } from '@millrace/kit/units';
import { renderTable } from '../render/table.js';
import type { Tools } from '../base/tools.js';
import type { QueueApi } from './api.js';

export async function listWorkers(
  api: QueueApi,
  queue: string,
  { terminal: { out, json } }: Pick<Tools, 'terminal'>,
): Promise<void> {
  const { body } = await api.call('listWorkers', { queue });
  if (json) {
    out.write(`${JSON.stringify(body, null, 2)}\n`);
    return;
  }
  if (body.workers.length === 0) {
    out.write(`No worker of ${queue} was seen in the last 10 minutes.\n`);
    return;
  }
  const columns = [
    { title: 'WORKER' },
    { title: 'PRINCIPAL' },
    { title: 'ADDRESS' },
    { title: 'SEEN' },
    { title: 'IN FLIGHT' },
    { title: 'CLAIMED' },
    { title: 'COMPLETED' },
    { title: 'FAILED' },
  ];
  const now = systemClock.now();
  const rows = body.workers.map((each) => [
    each.worker,
    each.principal,
    each.remote_ip ?? 'in process',
    `${humanDuration(Math.max(0, now - Date.parse(each.last_seen_at)))} ago`,
    each.in_flight,
    each.claimed,
    each.completed,
    each.failed,
  ]);
  out.write(renderTable(columns, rows, out));
}
