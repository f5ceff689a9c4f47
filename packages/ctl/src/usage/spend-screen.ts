import { barOf, dollars, rightAligned, sparkline } from '../render/figures.js';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { humanCount } from '@millrace/kit/units';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import { spendTables, type SpendBy } from './spend-tables.js';

type SpendRollup = DaemonSchema<'SpendRollup'>;
type SpendRow = DaemonSchema<'SpendRow'>;

const titles = { agent: 'AGENT', repo: 'REPOSITORY', day: 'DAY' } as const;

/** Rows per table without --by. */
const dearest = 5;
const trendDays = 30;
const barCells = 20;
/** Minimum width for a bar beside the figure. */
const wideColumns = 100;

/** Totals, trend and the largest spenders, or one whole table. */
export function spendScreen(rollup: SpendRollup, sheet: Sheet, by?: SpendBy): string {
  const basis = basisOf(rollup, sheet);
  if (rollup.by_backend.length === 0) {
    return `Nothing has been counted yet: this machine has no transcripts of agents.\n${basis}`;
  }
  if (by) return tableOf(titles[by], rollup[spendTables[by]], sheet);
  const tables: [string, readonly SpendRow[]][] = [
    ['BACKEND', rollup.by_backend],
    ['MODEL', rollup.by_model],
    ['AGENT', rollup.by_agent],
    ['REPOSITORY', rollup.by_repo],
  ];
  return [
    sumsOf(rollup, sheet),
    trendOf(rollup.by_day, sheet),
    ...tables.map(([title, rows]) => tableOf(title, rows, sheet, dearest)),
    basis,
  ].join('\n');
}

function basisOf({ basis }: SpendRollup, { paint }: Sheet): string {
  return `${paint('dim', `Tokens are measured; where they are not, figures are ${basis}.`)}\n`;
}

function sumsOf(rollup: SpendRollup, sheet: Sheet): string {
  const { input_tokens: input, output_tokens: output } = rollup;
  const { cache_read_tokens: read, cache_write_tokens: written } = rollup;
  const all = `${humanCount(input)} in, ${humanCount(output)} out`;
  const rows: [string, number, string, string][] = [
    ['Today', rollup.daily_usd, exactOf(rollup.daily_exact_usd), ''],
    ['Last 7 days', rollup.weekly_usd, exactOf(rollup.weekly_exact_usd), ''],
    ['This week', rollup.week_usd, '', ''],
    ['All time', rollup.total_usd, exactOf(rollup.exact_usd), all],
    [
      'Cache',
      rollup.cache_usd,
      '',
      `${humanCount(read)} read, ${humanCount(written)} written; not above`,
    ],
  ];
  const figures = rightAligned(rows.map(([, usd]) => dollars(usd)));
  const exact = rightAligned(rows.map(([, , usd]) => usd));
  return renderTable(
    ['SPEND', 'USD', 'EXACT USD', 'TOKENS'].map((title) => ({ title })),
    rows.map(([name, , , tokens], at): Cell[] => [
      name,
      { text: figures[at]!, tone: name === 'Cache' ? 'dim' : 'strong' },
      { text: exact[at]!, tone: 'dim' },
      { text: tokens, tone: 'dim' },
    ]),
    sheet,
  );
}

/** An unknown price is not 0. */
function exactOf(usd: number | null | undefined): string {
  return typeof usd !== 'number' ? 'unknown' : dollars(usd);
}

/** The last days up to the newest one, including days without spend. */
function trendOf(days: readonly SpendRow[], sheet: Sheet): string {
  const spent = new Map(days.map(({ key, usd }) => [key, usd ?? 0]));
  const last = Date.parse(`${days.at(-1)?.key}T12:00:00Z`);
  if (!Number.isFinite(last)) return '';
  const shown = Array.from({ length: trendDays }, (_, at) => {
    const time = last - (trendDays - 1 - at) * 86_400_000;
    return new Date(time).toISOString().slice(0, 10);
  });
  const values = shown.map((day) => spent.get(day) ?? 0);
  const line = sparkline(values, trendDays);
  const most = dollars(Math.max(...values));
  return `${trendDays} days to ${shown.at(-1)}  ${sheet.paint('ok', line)}  max ${most} a day\n`;
}

function tableOf(title: string, rows: readonly SpendRow[], sheet: Sheet, most = Infinity): string {
  const isWide = sheet.columns >= wideColumns;
  const shown = rows.slice(0, most);
  const top = Math.max(0, ...shown.map(({ usd }) => usd ?? 0));
  const figures = rightAligned(shown.map(({ usd }) => (usd === null ? '-' : dollars(usd))));
  const exact = rightAligned(shown.map(({ exact_usd }) => exactOf(exact_usd)));
  const cells = shown.map(
    ({ key, usd, input_tokens: input, output_tokens: output }, at): Cell[] => [
      key,
      usd === null ? { text: figures[at]!, tone: 'dim' } : figures[at]!,
      { text: exact[at]!, tone: 'dim' },
      ...(isWide
        ? [{ text: usd === null ? '' : barOf(usd, top, barCells), tone: 'ok' } as const]
        : []),
      `${humanCount(input)} in`,
      `${humanCount(output)} out`,
    ],
  );
  const columns = [title, 'USD', 'EXACT USD', ...(isWide ? [''] : []), 'TOKENS', ''];
  const table = renderTable(
    columns.map((each) => ({ title: each })),
    cells,
    sheet,
  );
  const left = rows.length - shown.length;
  return left > 0 ? `${table}${sheet.paint('dim', `... and ${left} more`)}\n` : table;
}
