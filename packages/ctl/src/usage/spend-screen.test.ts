import { expect, test } from 'vitest';
import { contractExample } from '../daemon/contract-examples.test-support.js';
import { plain } from '../render/paint.js';
import type { SpendBy } from './spend-tables.js';
import { spendScreen } from './spend-screen.js';

const example = contractExample('SpendRollup');
const screen = (columns: number, by?: SpendBy, rollup = example) =>
  spendScreen(rollup, { columns, paint: plain }, by);

test('at 80 columns there are the sums, the trend and the dearest of each kind', () => {
  expect(screen(80)).toBe(
    `
SPEND        USD     TOKENS
Today         $3.00
Last 7 days  $14.25
This week    $14.25
All time     $14.25  2.1M in, 420k out, 3M cache read, 40k written

30 days to 2026-01-15  ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁█▃  max $11.25 a day

BACKEND  USD       TOKENS
claude     $14.25  500k in  400k out
codex    no price  1.6M in  20k out

MODEL            USD       TOKENS
claude-opus-4-5    $14.25  500k in  400k out
gpt-5-codex      no price  1.6M in  20k out

AGENT                       USD       TOKENS
01K9ZQ4M7T3V8X2B6C0D5E1F9G    $14.25  500k in  400k out
01K9ZQ5A2N4P6R8S0T1V3W5X7Y  no price  1.6M in  20k out

REPOSITORY          USD     TOKENS
/home/ada/src/mill  $14.25  2.1M in  420k out

At the family rates: $12.50 in total, $2.50 today, cache ($1.75) not included.
No price is known of gpt-5-codex: tokens alone are shown.
Tokens are measured; where they are not, figures are HEURISTIC.
`.slice(1),
  );
  expect(screen(80, undefined, { ...example, basis: 'CALIBRATED' })).toContain('are CALIBRATED.');
});

test('at 140 columns there is room for bars', () => {
  expect(screen(140, 'day')).toBe(
    `
DAY         USD                           TOKENS
2026-01-14  $11.25  ####################  1.9M in  340k out
2026-01-15   $3.00  #####...............  200k in  80k out
`.slice(1),
  );
  expect(screen(140, 'agent')).toBe(
    `
AGENT                       USD                             TOKENS
01K9ZQ4M7T3V8X2B6C0D5E1F9G    $14.25  ####################  500k in  400k out
01K9ZQ5A2N4P6R8S0T1V3W5X7Y  no price                        1.6M in  20k out
`.slice(1),
  );
});

test('only --by shows more than the dearest five', () => {
  const by_agent = Array.from({ length: 8 }, (_, at) => ({
    ...example.by_agent[0]!,
    key: `agent-${at}`,
    exact_usd: 0.004 * at,
  }));
  const rollup = { ...example, by_agent };
  expect(screen(80, undefined, rollup)).toContain('... and 3 more\n');
  const whole = screen(80, 'agent', rollup);
  expect(whole.split('\n')).toHaveLength(10);
  expect(whole).toMatch(/agent-1 +<\$0\.01 /);
  expect(whole).toMatch(/agent-0 +\$0\.00 /);
});

test('what nobody has spent is said in words', () => {
  const nothing = { ...example, by_backend: [], by_day: [] };
  expect(screen(80, undefined, nothing)).toMatch(/^Nothing has been counted yet.*HEURISTIC/s);
});
