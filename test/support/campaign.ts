import { test, type TestAPI, type TestFunction } from 'vitest';
import { isFullCampaign, type CampaignReason } from '../../scripts/campaign-tests.mjs';

export { isFullCampaign };

/**
 * Two sizes of one campaign: `quick` for `npm test`, at which every planted fault is still found, and
 * `full` for `npm run test:campaigns`, which sets MILLRACE_CAMPAIGN=full.
 */
export function campaignSize({ quick, full }: { quick: number; full: number }): number {
  return isFullCampaign ? full : quick;
}

/**
 * `test` for what only `npm run test:campaigns` runs, because `npm test` has its behaviour in a
 * cheaper form; scripts/campaign-tests.mjs lists the reasons.
 */
export function inCampaign<Fixtures extends object = object>(
  reason: CampaignReason,
  base = test as unknown as TestAPI<Fixtures>,
) {
  const tags = { tags: `campaign-${reason}` };
  const again = (name: string, run: TestFunction<Fixtures>, timeout?: number) =>
    base(name, { ...tags, ...(timeout && { timeout }) }, run);
  const each =
    <T>(cases: readonly T[]) =>
    (name: string, run: (one: T) => Promise<void>) =>
      base.for(cases)(name, tags, run);
  return Object.assign(again, { each });
}
