import { barOf, dollars, rightAligned, sparkline } from '../render/figures.js';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { humanCount } from '@millrace/kit/units';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import { daemonApi, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';
import { spendTables, type SpendBy } from './spend-tables.js';
import { readWholeSpend } from './whole-spend.js';

type SpendRollup = DaemonSchema<'SpendRollup'>;
type SpendRow = DaemonSchema<'SpendRow'>;

const titles: Readonly<Record<SpendBy, string>> = {
  agent: 'AGENT',
  repo: 'REPOSITORY',
  day: 'DAY',
  hour: 'HOUR',
  model: 'MODEL',
  backend: 'BACKEND',
  branch: 'BRANCH',
  task: 'TASK',
};

/** Rows per table without --by. */
const dearest = 5;
const trendDays = 30;
const barCells = 20;
/** Minimum width for a bar beside the figure. */
const wideColumns = 100;

export async function showSpend(
  { by, ...flags }: DaemonFlags & { by?: SpendBy },
  tools: Tools,
): Promise<void> {
  const rollup = await readWholeSpend(await daemonApi(flags, tools), tools);
  const { format } = tools.terminal;
  // The rollup has several tables; names are those of the one that was chosen.
  const isList = format === 'csv' || (format === 'name' && by !== undefined);
  const document = isList ? rollup[spendTables[by ?? 'day']] : rollup;
  tools.terminal.show(document, (out) => spendScreen(rollup, out, by));
}

/** Totals, trend and the largest spenders, or one whole table. */
export function spendScreen(rollup: SpendRollup, sheet: Sheet, by?: SpendBy): string {
  const basis = basisOf(rollup, sheet);
  if (rollup.by_backend.length === 0) {
    return `Nothing has been counted yet: this machine has no transcripts of agents.\n${basis}`;
  }
  if (by) return tableOf(by, rollup[spendTables[by]] ?? [], sheet);
  const tables = (['backend', 'model', 'agent', 'repo'] as const).map((each) =>
    tableOf(each, rollup[spendTables[each]], sheet, dearest),
  );
  const head = [sumsOf(rollup, sheet), trendOf(rollup.by_day, sheet)];
  return [...head, ...tables, familyRates(rollup, sheet) + unpriced(rollup, sheet) + basis].join(
    '\n',
  );
}

function basisOf({ basis }: SpendRollup, { paint }: Sheet): string {
  return `${paint('dim', `Tokens are measured; where they are not, figures are ${basis}.`)}\n`;
}

/** The other figure of the REST API, which some compare with. */
export function familyRates(rollup: SpendRollup, { paint }: Sheet): string {
  const { daily_usd: today, total_usd: total, cache_usd: cache } = rollup;
  const text = `At the family rates: ${dollars(total)} in total, ${dollars(today)} today, cache (${dollars(cache)}) not included.`;
  return `${paint('dim', text)}\n`;
}

/** Models whose tokens are in no sum of dollars. */
export function unpriced({ unpriced_models: models = [] }: SpendRollup, { paint }: Sheet): string {
  if (models.length === 0) return '';
  const names = models.slice(0, dearest).join(', ');
  const more = models.length > dearest ? ` and ${models.length - dearest} more` : '';
  return `${paint('dim', `No price is known of ${names}${more}: tokens alone are shown.`)}\n`;
}

function sumsOf(rollup: SpendRollup, sheet: Sheet): string {
  const { input_tokens: input, output_tokens: output } = rollup;
  const { cache_read_tokens: read, cache_write_tokens: written } = rollup;
  const all = `${humanCount(input)} in, ${humanCount(output)} out`;
  const cache = `${humanCount(read)} cache read, ${humanCount(written)} written`;
  const rows: [string, number | null | undefined, string][] = [
    ['Today', knownSum(rollup, rollup.daily_exact_usd), ''],
    ['Last 7 days', knownSum(rollup, rollup.weekly_exact_usd), ''],
    ['This week', knownSum(rollup, rollup.week_exact_usd), ''],
    ['All time', rollup.exact_usd, `${all}, ${cache}`],
  ];
  const figures = rightAligned(rows.map(([, usd]) => priceText(usd)));
  return renderTable(
    ['SPEND', 'USD', 'TOKENS'],
    rows.map(([name, , tokens], at): Cell[] => [
      name,
      { text: figures[at]!, tone: 'strong' },
      { text: tokens, tone: 'dim' },
    ]),
    sheet,
  );
}

/** A time in which nothing was used cost nothing, unless a model has no price. */
export function knownSum(
  { unpriced_models: unknown = [] }: SpendRollup,
  usd: number | null | undefined,
): number | null {
  return usd ?? (unknown.length === 0 ? 0 : null);
}

/** An unknown price is not 0. */
export function priceText(usd: number | null | undefined): string {
  return typeof usd !== 'number' ? 'no price' : dollars(usd);
}

/** The last days up to the newest one, including days without spend. */
function trendOf(days: readonly SpendRow[], sheet: Sheet): string {
  const spent = new Map(days.map(({ key, exact_usd: usd }) => [key, usd ?? 0]));
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

function tableOf(by: SpendBy, rows: readonly SpendRow[], sheet: Sheet, most = Infinity): string {
  const isWide = sheet.columns >= wideColumns;
  const shown = rows.slice(0, most);
  const top = Math.max(0, ...shown.map(({ exact_usd: usd }) => usd ?? 0));
  const figures = rightAligned(shown.map(({ exact_usd: usd }) => priceText(usd)));
  const cells = shown.map((row, at): Cell[] => {
    const { key, exact_usd: usd, input_tokens: input, output_tokens: output } = row;
    const isPriced = typeof usd === 'number';
    return [
      key,
      isPriced ? figures[at]! : { text: figures[at]!, tone: 'dim' },
      ...(isWide ? [{ text: isPriced ? barOf(usd, top, barCells) : '', tone: 'ok' } as const] : []),
      `${humanCount(input)} in`,
      `${humanCount(output)} out`,
    ];
  });
  const columns = [titles[by], 'USD', ...(isWide ? [''] : []), 'TOKENS', ''];
  const table = renderTable(columns, cells, sheet);
  const left = rows.length - shown.length;
  return left > 0 ? `${table}${sheet.paint('dim', `... and ${left} more`)}\n` : table;
}
