import type { MetricsPoint, QueueMetrics } from '../../queue/api.js';

export interface SpacedPoint {
  /** Unix seconds. */
  time: number;
  /** Undefined in a gap of the history, so that the line breaks. */
  point: MetricsPoint | undefined;
}

/** The points in order, with a break at every gap. */
export function spacedPoints({ points, step_s }: QueueMetrics): SpacedPoint[] {
  const spaced: SpacedPoint[] = [];
  for (const point of points) {
    const time = Date.parse(point.ts) / 1000;
    const before = spaced.at(-1);
    if (before && time - before.time > 1.5 * step_s) {
      spaced.push({ time: before.time + step_s, point: undefined });
    }
    spaced.push({ time, point });
  }
  return spaced;
}

/** Number of empty points before the first task of a young queue. */
const lead = 3;

/** Without the time before the first task, so that a young queue fills its chart. */
export function sinceFirstTask(points: readonly SpacedPoint[]): readonly SpacedPoint[] {
  const first = points.findIndex(({ point }) => point && isBusy(point));
  return first > lead ? points.slice(first - lead) : points;
}

function isBusy({ pending, in_flight, submitted, succeeded, failed, dead }: MetricsPoint): boolean {
  return [pending, in_flight, submitted, succeeded, failed, dead].some((value) => (value ?? 0) > 0);
}
