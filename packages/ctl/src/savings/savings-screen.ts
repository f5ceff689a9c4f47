import type { DaemonSchema } from '@millrace/contract/daemon';
import { humanCount } from '@millrace/kit/units';
import { asTyped } from '../base/command-name.js';
import { sparkline } from '../render/sparkline.js';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import { wrap } from '../render/text.js';
import { alignedRight, bar, dollars, percent } from './figures.js';

type SavingsReport = DaemonSchema<'SavingsReport'>;

/** Minimum width for a bar beside the figures. */
const wideColumns = 100;
const maxTrend = 60;

/** The savings report: the two kinds, savings by feature, and the trend. */
export function savingsScreen(report: SavingsReport, sheet: Sheet): string {
  const from = report.since === null ? 'the start' : localTime(report.since);
  const heading = `${sheet.paint('strong', `Savings since ${from}`)}\n`;
  if (report.events === 0) {
    return (
      heading +
      asTyped(
        'Nothing is recorded yet. Run builds and tests as `ctl check -- npm test`, and git as ' +
          '`ctl git commit`.\n',
      ) +
      basis(report, sheet)
    );
  }
  return [
    heading + axes(report, sheet),
    features(report, sheet),
    trend(report, sheet),
    basis(report, sheet),
  ]
    .filter((part) => part !== '')
    .join('\n');
}

function axes({ axes: { context, offload }, events }: SavingsReport, sheet: Sheet): string {
  const contextEvents = events - offload.events;
  const rows: Cell[][] = [];
  if (contextEvents > 0) {
    const { raw_tokens: raw, kept_tokens: used, saved_tokens: saved } = context;
    const share = percent(context.reduction_pct);
    rows.push([
      { text: 'context', tone: 'strong' },
      `${humanCount(saved)} of ${humanCount(raw)} tokens saved, ${humanCount(used)} kept`,
      { text: share, tone: saved > 0 ? 'ok' : 'warn' },
      dollars(context.saved_dollars),
    ]);
  }
  if (offload.events > 0) {
    rows.push([
      { text: 'offload', tone: 'strong' },
      `${humanCount(offload.tokens)} tokens of work done by the local model`,
      '',
      dollars(offload.dollars),
    ]);
  }
  return renderTable([{ title: '' }, { title: '' }, { title: '' }, { title: '' }], rows, sheet);
}

function features({ features: rows }: SavingsReport, sheet: Sheet): string {
  const isWide = sheet.columns >= wideColumns;
  const [raw, saved] = [
    alignedRight(['WITHOUT', ...rows.map((row) => humanCount(row.raw_tokens))]),
    alignedRight(['SAVED', ...rows.map((row) => humanCount(row.saved_tokens))]),
  ];
  const titles = ['FEATURE', 'EVENTS', raw[0]!, saved[0]!, '', ...(isWide ? [''] : [])];
  return renderTable(
    titles.map((title) => ({ title })),
    rows.map((row, at): Cell[] => {
      const share = row.raw_tokens === 0 ? 0 : row.saved_tokens / row.raw_tokens;
      const isContext = row.feature !== 'llm_offload';
      return [
        row.feature,
        row.events,
        raw[at + 1]!,
        saved[at + 1]!,
        isContext ? percent(share * 100) : '',
        ...(isWide ? [isContext ? { text: bar(share), tone: 'ok' as const } : ''] : []),
      ];
    }),
    sheet,
  );
}

function trend({ buckets = [], bucket_granularity: width }: SavingsReport, sheet: Sheet): string {
  if (buckets.length < 2) return '';
  const room = Math.min(maxTrend, Math.max(10, sheet.columns - 45));
  const shown = buckets.slice(-room);
  const line = sparkline(
    shown.map(({ saved_tokens: saved }) => saved),
    room,
  );
  const [first, last] = [shown[0]!.date, shown.at(-1)!.date];
  const top = Math.max(...shown.map(({ saved_tokens: saved }) => saved));
  return (
    `${first} ${sheet.paint('ok', line)} ${last}\n` +
    `${sheet.paint('dim', `context saved by the ${width}, at most ${humanCount(top)} tokens`)}\n`
  );
}

function basis(report: SavingsReport, { columns, paint }: Sheet): string {
  const { basis: kind, calibrated_bytes_per_token: ratio } = report;
  const text =
    kind === 'CALIBRATED'
      ? `Tokens are estimated with a calibrated ratio of ${ratio} bytes each (CALIBRATED).`
      : 'Tokens are estimated at 4 bytes each (HEURISTIC). Run `ctl usage savings ' +
        '--calibrate` to measure the ratio.';
  const lines = wrap(asTyped(text), Math.min(columns, 100));
  return lines.map((line) => `${paint('dim', line)}\n`).join('');
}

/** `2026-01-14 10:12`, local time. */
export function localTime(timestamp: string): string {
  const at = new Date(timestamp);
  const wall = new Date(at.getTime() - at.getTimezoneOffset() * 60_000);
  return wall.toISOString().slice(0, 16).replace('T', ' ');
}
