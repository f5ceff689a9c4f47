import { expect, test } from 'vitest';
import { campaignSize } from '../../../test/support/campaign.js';
import { simulateFlows, simulateQueue, simulateQueueOnce } from '../simulation/index.js';

/** `npm run simulate` runs more; every fault and event below occurs within these. */
const seedCount = campaignSize({ quick: 16, full: 40 });

// Half a minute on an idle core at full size; a busy machine may take its time.
const patience = { timeout: 900_000 };

test(
  `simulation: all invariants hold over ${seedCount} seeds, and every fault occurred`,
  patience,
  async () => {
    const { tally, hits, runs } = await simulateQueue(seedCount);
    if (runs < seedCount) return; // one seed alone, by $MILLRACE_SEED
    for (const [name, count] of Object.entries(tally)) expect(count, name).toBeGreaterThan(5);
    expect([...hits.keys()].toSorted()).toEqual([
      'hint.lost',
      'store.crash_after',
      'store.crash_before',
      'store.fail_after',
      'store.fail_before',
    ]);
  },
);

test('simulation: all invariants hold on the embedded store', patience, async () => {
  const { tally } = await simulateQueue(campaignSize({ quick: 1, full: 4 }), { store: 'embedded' });
  expect(tally.tasks).toBeGreaterThan(20);
});

const flowSeeds = campaignSize({ quick: 10, full: 1_000 });

test(`simulation: flows hold over ${flowSeeds} seeds`, { timeout: 3_600_000 }, async () => {
  const { tally, runs } = await simulateFlows(flowSeeds);
  if (runs < flowSeeds) return; // one seed alone, by $MILLRACE_SEED
  for (const [name, count] of Object.entries(tally)) expect(count, name).toBeGreaterThan(5);
  const real = await simulateFlows(campaignSize({ quick: 1, full: 10 }), { store: 'embedded' });
  expect(real.tally.steps).toBeGreaterThan(5);
});

test('simulation: the same seed produces the same log', async () => {
  const first = await simulateQueueOnce(7);
  const second = await simulateQueueOnce(7);
  const other = await simulateQueueOnce(8);
  expect(first.journal.count).toBeGreaterThan(1_000);
  expect(second.journal.lines).toEqual(first.journal.lines);
  expect(other.journal.hash()).not.toBe(first.journal.hash());
});
