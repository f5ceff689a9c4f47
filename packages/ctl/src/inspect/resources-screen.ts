import type { DaemonSchema } from '@millrace/contract/daemon';
import { humanBytes, humanCount, humanDuration } from '@millrace/kit/units';
import { barOf, rightAligned } from '../render/figures.js';
import type { Tone } from '../render/paint.js';
import { renderTable, type Cell, type Sheet } from '../render/table.js';

type Metrics = DaemonSchema<'Metrics'>;
type AgentMetrics = DaemonSchema<'AgentMetrics'>;

/** Minimum width for bars beside the figures. */
const wideColumns = 100;
const barCells = 20;

/** The current usage. */
export function resourcesScreen(
  metrics: Metrics,
  names: ReadonlyMap<string, string>,
  sheet: Sheet,
): string {
  const isWide = sheet.columns >= wideColumns;
  const machine = titled(
    ['MACHINE', '', '', ...(isWide ? [''] : [])],
    machineRows(metrics.system, isWide),
    sheet,
  );
  const agents = agentsTable(metrics.agents, names, sheet);
  const scan = scanLine(metrics.transcript_scan);
  return `${machine}${daemonLine(metrics.daemon)}${scan}\n${agents}`;
}

function machineRows(system: Metrics['system'], isWide: boolean): Cell[][] {
  const { cpu_pct: cpu, mem_used: used, mem_total: total, load } = system;
  const memory = total > 0 ? (used / total) * 100 : null;
  const share = (value: number | null): Cell[] => [
    { text: percent(value), tone: toneOf(value) },
    ...(isWide ? [shareBar(value)] : []),
  ];
  return [
    ['CPU', ...share(cpu)],
    ['Memory', ...share(memory), `${humanBytes(used)} of ${humanBytes(total)}`],
    ['Load', load === null ? '-' : String(load)],
  ];
}

/** Outside the table, because its width changes between redraws. */
function daemonLine({ rss, event_loop_p99_ms: p99, uptime_s: seconds }: Metrics['daemon']): string {
  const up = humanDuration(seconds * 1000);
  return `Daemon   ${humanBytes(rss)}, p99 of its event loop ${delayText(p99)}, up ${up}\n`;
}

function scanLine(scan: Metrics['transcript_scan']): string {
  if (!scan || scan.bytes_total === 0) return '';
  const share = scan.bytes_read / scan.bytes_total;
  const left =
    share > 0 ? `, ${humanDuration(scan.elapsed_ms / share - scan.elapsed_ms)} left` : '';
  return `Scan     ${Math.floor(share * 100)}% of the transcripts read${left}\n`;
}

function agentsTable(
  agents: readonly AgentMetrics[],
  names: ReadonlyMap<string, string>,
  sheet: Sheet,
): string {
  if (agents.length === 0) return 'No live agents.\n';
  const isWide = sheet.columns >= wideColumns;
  const busiest = agents.toSorted((one, other) => (other.cpu_pct ?? -1) - (one.cpu_pct ?? -1));
  const cpu = rightAligned(busiest.map(({ cpu_pct }) => percent(cpu_pct)));
  const memory = rightAligned(busiest.map(({ rss }) => (rss === null ? '-' : humanBytes(rss))));
  const tokens = busiest.map(({ context_tokens: count }) => count);
  const context = rightAligned(tokens.map((count) => (count === null ? '-' : humanCount(count))));
  const most = Math.max(100, ...busiest.map(({ cpu_pct }) => cpu_pct ?? 0));
  return titled(
    ['AGENT', 'CPU', ...(isWide ? [''] : []), 'MEMORY', 'CONTEXT', 'ID'],
    busiest.map(({ id, cpu_pct }, at) => [
      names.get(id) ?? id,
      cpu[at]!,
      ...(isWide ? [cpu_pct === null ? '' : barOf(cpu_pct, most, barCells)] : []),
      memory[at]!,
      context[at]!,
      names.has(id) ? id : '',
    ]),
    sheet,
  );
}

function titled(titles: readonly string[], rows: readonly Cell[][], sheet: Sheet): string {
  return renderTable(titles, rows, sheet);
}

function shareBar(share: number | null): Cell {
  return share === null ? '' : { text: barOf(share, 100, barCells), tone: toneOf(share) };
}

function toneOf(share: number | null): Tone {
  if (share === null) return 'dim';
  if (share >= 95) return 'bad';
  return share >= 80 ? 'warn' : 'ok';
}

/** At most one decimal. */
export function percent(share: number | null): string {
  return share === null ? '-' : `${Math.round(share * 10) / 10}%`;
}

export function delayText(ms: number | null): string {
  return ms === null ? '-' : `${Math.round(ms * 10) / 10}ms`;
}
