import type { QueueSchema } from '@millrace/contract/queue';
import { systemClock } from '@millrace/kit/clock';
import { asTyped } from '../base/command-name.js';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import { timeText } from '../render/time.js';
import type { Tools } from '../base/tools.js';
import type { QueueApi } from './api.js';
import { tasks } from './arguments.js';

type Job = QueueSchema<'Job'>;
type Shows = Pick<Tools, 'terminal'>;

export async function listJobs(api: QueueApi, queue: string, { terminal }: Shows): Promise<void> {
  const { body } = await api.call('listJobs', { queue });
  const { out, json } = terminal;
  out.write(
    json ? `${JSON.stringify(body, null, 2)}\n` : jobsTable(body.jobs, systemClock.now(), out),
  );
}

export function jobsTable(jobs: readonly Job[], now: number, sheet: Sheet): string {
  if (jobs.length === 0) {
    return asTyped(
      'No jobs. Start one with `ctl queue redrive` or `ctl queue purge` and --async.\n',
    );
  }
  const rows = jobs.map((job): Cell[] => [
    job.id,
    job.action,
    statusCell(job.status),
    job.count,
    timeText(Date.parse(job.created_at), now, sheet),
    job.finished_at === null ? '-' : timeText(Date.parse(job.finished_at), now, sheet),
  ]);
  const titles = ['JOB', 'ACTION', 'STATUS', 'TASKS', 'CREATED', 'FINISHED'];
  return renderTable(
    titles.map((title) => ({ title })),
    rows,
    sheet,
  );
}

function statusCell(status: Job['status']): Cell {
  if (status === 'done') return { text: status, tone: 'ok' };
  if (status === 'failed') return { text: status, tone: 'bad' };
  return status === 'cancelled' ? { text: status, tone: 'warn' } : status;
}

export async function showJob(api: QueueApi, id: string, { terminal }: Shows): Promise<void> {
  const { body } = await api.call('getJob', { id });
  const { out, json } = terminal;
  if (json) {
    out.write(`${JSON.stringify(body, null, 2)}\n`);
    return;
  }
  const { job } = body;
  const rows: Cell[][] = [
    ['job', job.id],
    ['queue', job.queue],
    ['action', job.action],
    ['selector', JSON.stringify(job.selector)],
    ['status', statusCell(job.status)],
    ['tasks', String(job.count)],
    ['created', job.created_at],
    ['finished', job.finished_at ?? '-'],
  ];
  out.write(renderTable([{ title: '' }, { title: '', overflow: 'wrap' }], rows, out));
}

export async function cancelJob(api: QueueApi, id: string, { terminal }: Shows): Promise<void> {
  const { body } = await api.call('cancelJob', { id });
  const { out, json } = terminal;
  const { action, count } = body.job;
  if (json) out.write(`${JSON.stringify(body, null, 2)}\n`);
  else out.write(`Cancelled; the ${action} had changed ${tasks(count)}.\n`);
}
