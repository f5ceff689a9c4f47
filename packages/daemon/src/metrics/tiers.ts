/** How finely history is kept, and for how long. */
export interface Tier {
  /** Stands in the keys of its rows. */
  letter: 'r' | 'm' | 't';
  widthMs: number;
  retentionMs: number;
}

const minuteMs = 60_000;
const dayMs = 86_400_000;

/**
 * The finest first; each width is a multiple of the one before. What people ask for, such as the
 * last 6 hours, 7 days or 8 weeks, lies within a tier with something to spare.
 */
export const tiers: readonly [Tier, Tier, Tier] = [
  { letter: 'r', widthMs: 15_000, retentionMs: 7 * 3_600_000 },
  { letter: 'm', widthMs: minuteMs, retentionMs: 8 * dayMs },
  { letter: 't', widthMs: 10 * minuteMs, retentionMs: 57 * dayMs },
];

const [finest, , coarsest] = tiers;

/** The most samples of one answer. */
export const maxSamples = 1_500;

/** From where on a tier is whole. All tiers meet at such a moment. */
function wholeSince({ retentionMs }: Tier, now: number): number {
  return Math.ceil((now - retentionMs) / coarsest.widthMs) * coarsest.widthMs;
}

export function oldestKept(now: number): number {
  return now - coarsest.retentionMs;
}

/**
 * The width of one sample: what was asked for, or the finest there is; wider where there would be
 * too many, and then a multiple of what the span is kept in.
 */
export function stepFor(requestedMs: number | undefined, from: number, now: number): number {
  const wanted = Math.max(requestedMs ?? finest.widthMs, finest.widthMs);
  const span = Math.max(0, now - from);
  // A span that begins in the middle of a step touches one more.
  const fits = (stepMs: number) =>
    Math.floor(now / stepMs) - Math.floor(from / stepMs) < maxSamples;
  if (requestedMs !== undefined && fits(wanted)) return wanted;
  const tier = tiers.find((each) => from >= wholeSince(each, now)) ?? coarsest;
  const unit = tier.widthMs;
  let stepMs = Math.ceil(Math.max(wanted, span / maxSamples) / unit) * unit;
  while (!fits(stepMs)) stepMs += unit;
  return stepMs;
}

/** A stretch of time and the tier to read it from. */
export interface Stretch {
  tier: Tier;
  from: number;
  to: number;
}

/**
 * Where to read the time from `from` to `to` for samples of `stepMs`: in the coarsest tier whose
 * rows fit into a step, otherwise in the finest that is kept. No moment is in two stretches.
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
