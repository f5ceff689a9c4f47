import type { QueueSchema } from '@millrace/contract/queue';
import { systemClock } from '@millrace/kit/clock';
import { humanDuration } from '@millrace/kit/units';
import { queueApi, type QueueFlags } from '../queue/api.js';
import { renderTable, type Sheet } from '../render/table.js';
import type { Flags, Tools } from '../base/tools.js';
import { agentsQueue } from './submitting.js';

export type FleetFlags = Flags<'queue queueUrl tokenFile data'>;

export type Fleet = QueueSchema<'WorkerList'> & { tasks: QueueSchema<'Task'>[] };

const maxTasks = '100';

/** Lists the machines that claim from the queue, and the tasks that their agents work on. */
export async function listFleet(flags: FleetFlags, tools: Tools): Promise<void> {
  const { queue = agentsQueue, queueUrl, tokenFile, data } = flags;
  const place: QueueFlags = {
    ...(queueUrl !== undefined && { url: queueUrl }),
    ...(tokenFile !== undefined && { tokenFile }),
    ...(data !== undefined && { data }),
  };
  const api = queueApi(place, tools);
  const { workers } = (await api.call('listWorkers', { queue })).body;
  const query = { status: 'IN_FLIGHT', limit: maxTasks };
  const listed = (await api.call('listTasks', { queue, query })).body.tasks;
  // A list has no progress.
  const answers = await Promise.all(listed.map(({ id }) => api.call('getTask', { id })));
  const tasks = answers.map(({ body }) => body).filter(({ status }) => status === 'IN_FLIGHT');
  tools.terminal.show({ workers, tasks }, (out) =>
    fleetScreen({ workers, tasks }, systemClock.now(), out),
  );
}

export function fleetScreen({ workers, tasks }: Fleet, now: number, sheet: Sheet): string {
  if (workers.length === 0) return 'No machine claimed work in the last 10 minutes.\n';
  const since = (time: string) => humanDuration(Math.max(0, now - Date.parse(time)));
  const titles = (...names: string[]) => names.map((title) => ({ title }));
  const machines = renderTable(
    titles('MACHINE', 'ADDRESS', 'SEEN', 'AGENTS', 'COMPLETED', 'FAILED'),
    workers.map((each) => [
      each.worker,
      each.remote_ip ?? '-',
      `${since(each.last_seen_at)} ago`,
      each.in_flight,
      each.completed,
      each.failed,
    ]),
    sheet,
  );
  if (tasks.length === 0) return machines;
  const running = renderTable(
    titles('TASK', 'ATTEMPT', 'REPORTED', 'AGENT'),
    tasks.map((each) => [
      each.id,
      each.attempt,
      each.progress ? `${since(each.progress.at)} ago` : '-',
      each.progress?.message ?? '-',
    ]),
    sheet,
  );
  return `${machines}\n${running}`;
}
