import type { DaemonSchema } from '@millrace/contract/daemon';
import { daemonApi, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';
import { readSavings } from '../savings/savings.js';
import { familyRates, knownSum, priceText, unpriced } from '../usage/spend-screen.js';
import { readWholeSpend } from '../usage/whole-spend.js';
import { humanCount } from '@millrace/kit/units';
import { asTyped } from '../base/command-name.js';
import { rightAligned } from '../render/figures.js';
import { renderTable, type Cell, type Sheet } from '../render/table.js';

/** Shows spend beside savings. With --json: both documents of the REST API. */
export async function showCost(flags: DaemonFlags, tools: Tools): Promise<void> {
  const api = await daemonApi(flags, tools);
  const [spend, savings] = await Promise.all([readWholeSpend(api, tools), readSavings(api)]);
  const document = { spend, savings };
  tools.terminal.show(document, (out) => costScreen(document, out));
}

export interface Cost {
  spend: DaemonSchema<'SpendRollup'>;
  savings: DaemonSchema<'SavingsReport'>;
}

/** Spend and savings on one screen. The two kinds of savings are never added up. */
export function costScreen({ spend, savings }: Cost, sheet: Sheet): string {
  const { context, offload } = savings.axes;
  const tokens = `${humanCount(spend.input_tokens)} in, ${humanCount(spend.output_tokens)} out`;
  const percent = Math.round(context.reduction_pct * 10) / 10;
  const rows: [string, number | null | undefined, string][] = [
    ['Spent today', knownSum(spend, spend.daily_exact_usd), ''],
    ['Spent in the last 7 days', knownSum(spend, spend.weekly_exact_usd), ''],
    ['Spent in total', spend.exact_usd, tokens],
    [
      'Saved: kept out of context',
      context.saved_dollars,
      `${humanCount(context.saved_tokens)} of ${humanCount(context.raw_tokens)} (${percent}%)`,
    ],
    ['Saved: local model', offload.dollars, `${humanCount(offload.tokens)} tokens moved`],
  ];
  const figures = rightAligned(rows.map(([, usd]) => priceText(usd)));
  const table = renderTable(
    ['COST', 'USD', 'TOKENS'],
    rows.map(([name, , note], at): Cell[] => [
      name,
      { text: figures[at]!, tone: name.startsWith('Saved') ? 'ok' : 'strong' },
      { text: note, tone: 'dim' },
    ]),
    sheet,
  );
  const basis =
    savings.basis === 'CALIBRATED'
      ? 'Savings use a calibrated ratio of bytes to tokens.'
      : `Savings assume 4 bytes per token (measure it with ${asTyped('ctl usage savings --calibrate')}).`;
  const kinds = `Spend is ${spend.basis}, savings are ${savings.basis}.`;
  const notes = [basis, kinds].map((line) => `${sheet.paint('dim', line)}\n`).join('');
  return table + familyRates(spend, sheet) + unpriced(spend, sheet) + notes;
}
