/**
 * Two sizes of one campaign: `quick` for `npm test`, at which every planted fault is still found, and
 * `full` for `npm run test:campaigns`, which sets MILLRACE_CAMPAIGN=full.
 */
export const isFullCampaign = process.env['MILLRACE_CAMPAIGN'] === 'full';

export function campaignSize({ quick, full }: { quick: number; full: number }): number {
  return isFullCampaign ? full : quick;
}

/** The second HTTP/2 implementation of gRPC is nobody's default, and is tested at full size only. */
export const testedKinds = isFullCampaign ? (['own', 'node'] as const) : (['own'] as const);
