import type { Clock } from '@millrace/kit/clock';
import type { UsageWindow } from './adapter.js';

interface Point {
  at: number;
  percent: number;
}

const minPoints = 3;
const minSpanMs = 10 * 60_000;
/** What is older says little about the rate of now. */
const maxSpanMs = 2 * 3_600_000;

/**
 * The readings of each usage window, and when it will be full at the rate that they show. Without
 * three readings over ten minutes there is no forecast.
 */
export class Forecasts {
  readonly #points = new Map<string, Point[]>();

  constructor(private readonly clock: Pick<Clock, 'now'>) {}

  note(backend: string, windows: readonly UsageWindow[]): void {
    const at = this.clock.now();
    for (const { scope, usedPercent: percent } of windows) {
      if (percent === null) continue;
      const name = `${backend}:${scope}`;
      const points = this.#points.get(name) ?? [];
      // A window that was reset begins again.
      const known = points.length > 0 && percent < points.at(-1)!.percent ? [] : points;
      const recent = known.filter((point) => at - point.at <= maxSpanMs);
      this.#points.set(name, [...recent, { at, percent }]);
    }
  }

  /** When the window is full; null when that is unknown, or later than its reset. */
  fullAt(backend: string, { scope, usedPercent, resetsAt }: UsageWindow): number | null {
    const points = this.#points.get(`${backend}:${scope}`) ?? [];
    const [first, last] = [points[0], points.at(-1)];
    if (!first || !last || points.length < minPoints || last.at - first.at < minSpanMs) return null;
    if (usedPercent === null || usedPercent >= 100) return null;
    const rate = (last.percent - first.percent) / (last.at - first.at);
    if (rate <= 0) return null;
    const fullAt = last.at + (100 - last.percent) / rate;
    return resetsAt !== null && fullAt >= resetsAt ? null : Math.round(fullAt);
  }
}
