import type { DaemonSchema } from '@millrace/contract/daemon';
import { systemClock } from '@millrace/kit/clock';
import { daemonApi, otherVersion, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';
import { parseSince } from '../base/since.js';
import { humanDuration } from '@millrace/kit/units';
import { sparkline } from '../render/figures.js';
import { renderTable, type Cell, type Sheet } from '../render/table.js';

type Insights = DaemonSchema<'Insights'>;

export async function showInsights(
  { since, ...flags }: DaemonFlags & { since?: string },
  tools: Tools,
): Promise<void> {
  const from = since === undefined ? undefined : parseSince(since, systemClock.now()).text;
  const api = await daemonApi(flags, tools);
  const insights = await api.call('getInsights', {
    query: from === undefined ? {} : { since: from },
  });
  if (!isInsights(insights)) throw otherVersion(api, 'insights');
  tools.terminal.show(insights, (out) => insightsScreen(insights, out));
}

function isInsights(value: unknown): value is Insights {
  if (typeof value !== 'object' || value === null) return false;
  const { durations, busiest_hours: hours, error_rates: rates } = value as Partial<Insights>;
  return durations !== undefined && Array.isArray(hours) && Array.isArray(rates);
}

type DurationStats = DaemonSchema<'DurationStats'>;

/** Maximum number of rows per table. */
const maxRows = 5;

/** A short table for each kind of insight. */
export function insightsScreen(insights: Insights, sheet: Sheet): string {
  if (insights.sessions === 0) return 'No sessions yet.\n';
  const { overall, by_backend: backends, by_repo: repos } = insights.durations;
  return [
    durations([overall, ...backends, ...repos.slice(0, maxRows)], sheet),
    hours(insights.busiest_hours, sheet),
    failures(insights.error_rates, sheet),
    files(insights.co_edited_files, sheet),
    parallels(insights.parallel_candidates, sheet),
  ]
    .filter((part) => part !== '')
    .join('\n');
}

function durations(rows: readonly DurationStats[], sheet: Sheet): string {
  const span = (ms: number | null) => (ms === null ? '-' : humanDuration(ms));
  return table(
    ['ENDED SESSIONS', 'COUNT', 'MEDIAN', '90%', 'MAX', 'TOTAL'],
    rows.map(({ key, sessions, p50_ms: p50, p90_ms: p90, max_ms: max, total_ms: total }) => [
      key,
      sessions,
      span(p50),
      span(p90),
      span(max),
      span(total),
    ]),
    sheet,
  );
}

function hours(busy: Insights['busiest_hours'], sheet: Sheet): string {
  const [busiest] = busy;
  if (!busiest) return '';
  const byHour = new Map(busy.map(({ hour, busy_ms: ms }) => [hour, ms]));
  const line = sparkline(
    Array.from({ length: 24 }, (_, hour) => byHour.get(hour) ?? 0),
    24,
  );
  const hour = String(busiest.hour).padStart(2, '0');
  const most = humanDuration(busiest.busy_ms);
  return `Hours 0 to 23  ${sheet.paint('ok', line)}  busiest at ${hour}:00 (${most})\n`;
}

function failures(rates: Insights['error_rates'], sheet: Sheet): string {
  const shown = rates.filter(({ by, errors }) => by === 'all' || errors > 0).slice(0, maxRows + 1);
  return table(
    ['GROUP', 'SESSIONS', 'ERRORS', 'RATE'],
    shown.map(({ by, key, sessions, errors, rate }) => [
      by === 'all' ? 'all' : `${by} ${key}`,
      sessions,
      errors,
      rate === null ? '-' : `${Math.round(rate * 1000) / 10}%`,
    ]),
    sheet,
  );
}

function files(pairs: Insights['co_edited_files'], sheet: Sheet): string {
  return table(
    ['FILE', 'EDITED WITH', 'SESSIONS', 'SHARE'],
    pairs
      .slice(0, maxRows)
      .map((pair) => [...pair.files, pair.sessions, `${Math.round(pair.share * 100)}%`]),
    sheet,
  );
}

function parallels(candidates: Insights['parallel_candidates'], sheet: Sheet): string {
  return table(
    ['JOB', 'PARALLEL WITH', 'SAVING'],
    candidates
      .slice(0, maxRows)
      .map((each) => [each.second_name, each.first_name, humanDuration(each.saved_ms)]),
    sheet,
  );
}

function table(titles: readonly string[], rows: readonly Cell[][], sheet: Sheet): string {
  if (rows.length === 0) return '';
  return renderTable(titles, rows, sheet);
}
