/** Resolution and retention of recorded samples. */
export interface Tier {
  /** Part of its row keys. */
  letter: 'r' | 'm' | 't';
  widthMs: number;
  retentionMs: number;
}

const minuteMs = 60_000;
const dayMs = 86_400_000;

/**
 * Finest first; each width is a multiple of the previous one. Common ranges (6 hours, 7 days,
 * 8 weeks) fit into one tier.
 */
export const tiers: readonly [Tier, Tier, Tier] = [
  { letter: 'r', widthMs: 15_000, retentionMs: 7 * 3_600_000 },
  { letter: 'm', widthMs: minuteMs, retentionMs: 8 * dayMs },
  { letter: 't', widthMs: 10 * minuteMs, retentionMs: 57 * dayMs },
];

const [finest, , coarsest] = tiers;

/** Maximum number of samples in one response. */
export const maxSamples = 1_500;

/** Start of a tier's complete data, aligned to the widths of all tiers. */
function wholeSince({ retentionMs }: Tier, now: number): number {
  return Math.ceil((now - retentionMs) / coarsest.widthMs) * coarsest.widthMs;
}

export function retentionStart(now: number): number {
  return now - coarsest.retentionMs;
}

/**
 * The step: as requested, or the finest available; wider when there would be too many samples, and
 * then a multiple of the width of the tier.
 */
export function stepFor(requestedMs: number | undefined, from: number, now: number): number {
  const wanted = Math.max(requestedMs ?? finest.widthMs, finest.widthMs);
  const span = Math.max(0, now - from);
  // A range that starts within a step touches one more step.
  const fits = (stepMs: number) =>
    Math.floor(now / stepMs) - Math.floor(from / stepMs) < maxSamples;
  if (requestedMs !== undefined && fits(wanted)) return wanted;
  const tier = tiers.find((each) => from >= wholeSince(each, now)) ?? coarsest;
  const unit = tier.widthMs;
  let stepMs = Math.ceil(Math.max(wanted, span / maxSamples) / unit) * unit;
  while (!fits(stepMs)) stepMs += unit;
  return stepMs;
}

/** An interval and the tier to read it from. */
export interface Stretch {
  tier: Tier;
  from: number;
  to: number;
}

/**
 * Intervals to read from `from` to `to` for steps of `stepMs`: the coarsest tier whose rows fit
 * into a step, otherwise the finest that is retained. The intervals do not overlap.
 */
export function stretchesOf(from: number, to: number, stepMs: number, now: number): Stretch[] {
  const stretches: Stretch[] = [];
  let at = from;
  while (at < to) {
    const start = at;
    const candidates = tiers.filter((each) => start >= wholeSince(each, now));
    const even = candidates.findLast((each) => fitsIn(each, stepMs) && start % each.widthMs === 0);
    const tier = even ?? candidates[0] ?? coarsest;
    const ends = tiers.flatMap((each) => [
      wholeSince(each, now),
      ...(fitsIn(each, stepMs) && each.widthMs > tier.widthMs
        ? [Math.ceil((start + 1) / each.widthMs) * each.widthMs]
        : []),
    ]);
    at = Math.min(to, ...ends.filter((end) => end > start));
    stretches.push({ tier, from: start, to: at });
  }
  return stretches;
}

function fitsIn({ widthMs }: Tier, stepMs: number): boolean {
  return stepMs % widthMs === 0;
}
