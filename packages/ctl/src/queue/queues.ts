import type { QueueSchema } from '@millrace/contract/queue';
import { humanDuration } from '@millrace/kit/units';
import { asTyped } from '../base/command-name.js';
import type { Tools } from '../base/tools.js';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import type { QueueApi } from './api.js';

type Shows = Pick<Tools, 'terminal'>;

export async function listQueues(api: QueueApi, { terminal }: Shows): Promise<void> {
  const { body: queues } = await api.call('listQueues');
  const { out, json } = terminal;
  out.write(json ? `${JSON.stringify(queues, null, 2)}\n` : queuesTable(queues, out));
}

export function queuesTable(queues: Readonly<QueueSchema<'QueueList'>>, sheet: Sheet): string {
  if (queues.length === 0) {
    return asTyped('No queues yet. Create one with `ctl queue create NAME --pull`.\n');
  }
  const titles = ['QUEUE', 'STATE', 'PENDING', 'IN FLIGHT', 'DLQ', 'OLDEST', 'CALLBACK'];
  const rows = queues.map(({ name, summary }): Cell[] => [
    name,
    stateCell(summary.paused),
    summary.pending,
    summary.in_flight,
    summary.dlq_depth,
    ageText(summary.oldest_pending_age_ms),
    summary.callback_url ?? 'pull',
  ]);
  return renderTable(
    titles.map((title) => ({ title })),
    rows,
    sheet,
  );
}

export function stateCell(paused: boolean): Cell {
  return paused ? { text: 'paused', tone: 'warn' } : { text: 'running', tone: 'ok' };
}

export function ageText(ageMs: number): string {
  return ageMs === 0 ? '-' : humanDuration(ageMs);
}

export async function showStats(api: QueueApi, queue: string, { terminal }: Shows): Promise<void> {
  const { body: stats } = await api.call('getStats', { queue });
  const { out, json } = terminal;
  if (json) {
    out.write(`${JSON.stringify(stats, null, 2)}\n`);
    return;
  }
  const { dlq_depth: dead } = stats;
  const rows: Cell[][] = [
    ['queue', queue],
    ['pending', String(stats.pending)],
    ['in flight', String(stats.in_flight)],
    ['dlq', dead === 0 ? '0' : { text: String(dead), tone: 'bad' }],
    ['oldest', ageText(stats.oldest_pending_age_ms)],
    ['rate/s', String(stats.rate_per_second)],
    ['succeeded', String(stats.succeeded_total)],
    ['failed', String(stats.failed_total)],
    ['died', String(stats.dead_total)],
  ];
  out.write(renderTable([{ title: '' }, { title: '' }], rows, out));
}

export async function setPaused(
  api: QueueApi,
  { queue, paused }: { queue: string; paused: boolean },
  { terminal }: Shows,
): Promise<void> {
  await api.call(paused ? 'pauseQueue' : 'resumeQueue', { queue });
  const { out, json } = terminal;
  if (json) out.write(`${JSON.stringify({ queue, paused }, null, 2)}\n`);
  else
    out.write(
      paused ? `Paused ${queue}: new tasks are stored and not delivered.\n` : `Resumed ${queue}.\n`,
    );
}

export async function deleteQueue(api: QueueApi, queue: string, { terminal }: Shows) {
  await api.call('deleteQueue', { queue });
  const { out, json } = terminal;
  out.write(json ? `${JSON.stringify({ deleted: queue }, null, 2)}\n` : `Deleted ${queue}.\n`);
}

/** A callback may take half an hour, the maximum of a config. */
const probePatienceMs = 1_830_000;

export async function testCallback(
  api: QueueApi,
  queue: string,
  { terminal, exitWith }: Pick<Tools, 'terminal' | 'exitWith'>,
): Promise<void> {
  const call = { queue, patienceMs: probePatienceMs };
  const { body: result } = await api.call('testCallback', call);
  if (!result.delivered) exitWith(1);
  const { out, json } = terminal;
  out.write(json ? `${JSON.stringify(result, null, 2)}\n` : probeSheet(result, out));
}

export function probeSheet(result: QueueSchema<'CallbackTestResult'>, sheet: Sheet): string {
  const rows: Cell[][] = [
    ['delivered', result.delivered ? { text: 'yes', tone: 'ok' } : { text: 'no', tone: 'bad' }],
    ['status', result.http_status === null ? 'no response' : String(result.http_status)],
    ['took', humanDuration(result.duration_ms)],
  ];
  if (result.error_type !== null) rows.push(['error', result.error_type]);
  if (result.message !== null) rows.push(['message', result.message]);
  return renderTable([{ title: '' }, { title: '', overflow: 'wrap' }], rows, sheet);
}
