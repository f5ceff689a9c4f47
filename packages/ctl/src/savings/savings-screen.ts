import type { DaemonSchema } from '@millrace/contract/daemon';
import { humanCount } from '@millrace/kit/units';
import { asTyped } from '../base/command-name.js';
import { bar, localTime, rightAligned, sparkline } from '../render/figures.js';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import { wrap, cut, printable } from '../render/text.js';

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
  return renderTable(['', '', '', ''], rows, sheet);
}

function features({ features: rows }: SavingsReport, sheet: Sheet): string {
  const isWide = sheet.columns >= wideColumns;
  const [raw, saved] = [
    rightAligned(['WITHOUT', ...rows.map((row) => humanCount(row.raw_tokens))]),
    rightAligned(['SAVED', ...rows.map((row) => humanCount(row.saved_tokens))]),
  ];
  const titles = ['FEATURE', 'EVENTS', raw[0]!, saved[0]!, '', ...(isWide ? [''] : [])];
  return renderTable(
    titles,
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

type Sample = DaemonSchema<'SavingsSample'>;

const maxShown = 10;
const linesShown = 8;

/** The newest samples, to judge whether the omitted text mattered. */
export function auditScreen({ samples = [] }: SavingsReport, sheet: Sheet): string {
  if (samples.length === 0) {
    return (
      'No samples are stored. Set `savings_samples: true` in config.yaml and restart the ' +
      'daemon to store them from then on.\n'
    );
  }
  return samples
    .slice(0, maxShown)
    .map((sample) => pair(sample, sheet))
    .join('\n');
}

function pair(sample: Sample, sheet: Sheet): string {
  const { ts, feature, repo, raw_tokens: raw, kept_tokens: shortened } = sample;
  const share = raw === 0 ? 0 : (100 * (raw - shortened)) / raw;
  const figures = `${exact(raw)} tokens raw, ${exact(shortened)} kept, ${percent(share)} saved`;
  const place = repo === null ? '' : `  ${printable(repo)}`;
  const heading = cut(`${localTime(ts)}  ${feature}  ${figures}${place}`, sheet.columns);
  return (
    `${sheet.paint('strong', heading)}\n` +
    excerpt('raw', sample.raw, sheet) +
    excerpt('kept', sample.kept, sheet)
  );
}

function excerpt(name: string, text: string, { columns, paint }: Sheet): string {
  const lines = text.replace(/\n+$/, '').split('\n');
  const shown = lines.length <= linesShown ? lines : lines.slice(-linesShown);
  const hidden = lines.length - shown.length;
  const note = hidden === 0 ? [] : [paint('dim', `(${exact(hidden)} earlier lines)`)];
  const prefix = `  ${name.padEnd(4)} | `;
  const body = [...note, ...shown.map((line) => cut(printable(line), columns - prefix.length))];
  return body.map((line) => `${paint('dim', prefix)}${line}`.trimEnd().concat('\n')).join('');
}

/** Price of a million input tokens of the top tier, from the report. */
const usdPerMillion = 5;

/** Tokens without savings beside tokens with savings. */
export function benchmarkScreen(report: SavingsReport, sheet: Sheet): string {
  const { raw_tokens: raw, kept_tokens: used, saved_tokens: saved } = report.axes.context;
  const { saved_dollars: savedUsd, reduction_pct: reduction } = report.axes.context;
  const tokens = rightAligned(['TOKENS', ...[raw, used, saved].map(exact)]);
  const priced = [raw, used].map((count) => dollars((count * usdPerMillion) / 1e6));
  const costs = rightAligned(['DOLLARS', ...priced, dollars(savedUsd)]);
  const share = raw === 0 ? 0 : used / raw;
  const rows: Cell[][] = [
    ['without', tokens[1]!, costs[1]!, { text: bar(raw === 0 ? 0 : 1), tone: 'warn' }],
    ['with', tokens[2]!, costs[2]!, { text: bar(share), tone: 'ok' }],
    ['saved', tokens[3]!, costs[3]!, { text: percent(reduction), tone: 'strong' }],
  ];
  const { offload } = report.axes;
  const from = report.since === null ? 'the start' : localTime(report.since);
  return (
    renderTable(['CONTEXT', tokens[0]!, costs[0]!, ''], rows, sheet) +
    `Offload, counted separately: ${exact(offload.tokens)} tokens, ` +
    `${dollars(offload.dollars)}.\n` +
    `${sheet.paint('dim', `Since ${from}, ${exact(report.events)} events, ${report.basis}.`)}\n`
  );
}

/** `$12.50`, `$0.41`, and two significant digits for less. */
export function dollars(amount: number): string {
  const sign = amount < 0 ? '-' : '';
  const size = Math.abs(amount);
  if (size > 0 && size < 0.0001) return `${sign}<$0.0001`;
  const text = size === 0 || size >= 0.1 ? grouped(size.toFixed(2)) : size.toPrecision(2);
  return `${sign}$${text}`;
}

/** `81,000`. */
export function exact(count: number): string {
  return grouped(String(count));
}

/** Rounds, but shows 100 only for exactly 100. */
export function percent(value: number): string {
  const rounded = Math.round(value * 10) / 10;
  return `${rounded >= 100 && value < 100 ? 99.9 : rounded}%`;
}

function grouped(digits: string): string {
  return digits.replaceAll(/\B(?=(?:\d{3})+(?!\d))(?<!\.\d*)/g, ',');
}
