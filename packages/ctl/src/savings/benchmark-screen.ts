import type { DaemonSchema } from '@millrace/contract/daemon';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import { alignedRight, bar, dollars, exact, percent } from './figures.js';
import { localTime } from './savings-screen.js';

type SavingsReport = DaemonSchema<'SavingsReport'>;

/** Price of a million input tokens of the top tier, from the report. */
const usdPerMillion = 5;

/** Tokens without savings beside tokens with savings. */
export function benchmarkScreen(report: SavingsReport, sheet: Sheet): string {
  const { raw_tokens: raw, kept_tokens: used, saved_tokens: saved } = report.axes.context;
  const { saved_dollars: savedUsd, reduction_pct: reduction } = report.axes.context;
  const tokens = alignedRight(['TOKENS', ...[raw, used, saved].map(exact)]);
  const priced = [raw, used].map((count) => dollars((count * usdPerMillion) / 1e6));
  const costs = alignedRight(['DOLLARS', ...priced, dollars(savedUsd)]);
  const share = raw === 0 ? 0 : used / raw;
  const rows: Cell[][] = [
    ['without', tokens[1]!, costs[1]!, { text: bar(raw === 0 ? 0 : 1), tone: 'warn' }],
    ['with', tokens[2]!, costs[2]!, { text: bar(share), tone: 'ok' }],
    ['saved', tokens[3]!, costs[3]!, { text: percent(reduction), tone: 'strong' }],
  ];
  const titles = ['CONTEXT', tokens[0]!, costs[0]!, ''].map((title) => ({ title }));
  const { offload } = report.axes;
  const from = report.since === null ? 'the start' : localTime(report.since);
  return (
    renderTable(titles, rows, sheet) +
    `Offload, counted separately: ${exact(offload.tokens)} tokens, ` +
    `${dollars(offload.dollars)}.\n` +
    `${sheet.paint('dim', `Since ${from}, ${exact(report.events)} events, ${report.basis}.`)}\n`
  );
}
