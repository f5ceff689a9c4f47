import { expect, test } from 'vitest';
import { contractExample } from '../daemon/contract-examples.test-support.js';
import { plain } from '../render/paint.js';
import { costScreen } from './cost.js';

const cost = {
  spend: contractExample('SpendRollup'),
  savings: contractExample('SavingsReport'),
};

test('spend and both kinds of savings stand on one screen', () => {
  expect(costScreen(cost, { columns: 80, paint: plain })).toBe(
    `
COST                        USD     TOKENS
Spent today                  $3.00
Spent in the last 7 days    $14.25
Spent in total              $14.25  2.1M in, 420k out
Saved: kept out of context   $0.41  81k of 90k (90%)
Saved: local model           $0.01  1.2k tokens moved
At the family rates: $12.50 in total, $2.50 today, cache ($1.75) not included.
No price is known of gpt-5-codex: tokens alone are shown.
Savings assume 4 bytes per token (measure it with ctl usage savings --calibrate).
Spend is HEURISTIC, savings are HEURISTIC.
`.slice(1),
  );
  const { savings } = cost;
  const calibrated = { ...cost, savings: { ...savings, basis: 'CALIBRATED' as const } };
  const screen = costScreen(calibrated, { columns: 140, paint: plain });
  expect(screen).toContain('a calibrated ratio');
  expect(screen).toContain('savings are CALIBRATED');
});
