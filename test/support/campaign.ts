/**
 * Two sizes of one campaign: `quick` for `npm test`, at which every planted fault is still found, and
 * `full` for `npm run test:campaigns`, which sets MILLRACE_CAMPAIGN=full.
 */
export const isFullCampaign = process.env['MILLRACE_CAMPAIGN'] === 'full';

export function campaignSize({ quick, full }: { quick: number; full: number }): number {
  return isFullCampaign ? full : quick;
}
