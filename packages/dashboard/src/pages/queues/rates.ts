export interface Sample {
  at: number;
  pending: number;
  inFlight: number;
  dead: number;
}

export type SeenQueue = Omit<Sample, 'at'> & { name: string };

const rateWindowMs = 30_000;
export const keptMs = 15 * 60_000;

/**
 * What was seen of the queues while their pages were open. The server counts what is there, not
 * what went by, so a rate is the net of both.
 */
export class QueueHistory {
  readonly #samples = new Map<string, Sample[]>();

  see(at: number, queues: readonly SeenQueue[]): void {
    const present = new Set(queues.map(({ name }) => name));
    for (const name of this.#samples.keys()) if (!present.has(name)) this.#samples.delete(name);
    for (const { name, ...counts } of queues) {
      const samples = this.#samples.get(name) ?? [];
      if (samples.at(-1)?.at === at) continue;
      const kept = samples.filter((sample) => sample.at > at - keptMs);
      this.#samples.set(name, [...kept, { at, ...counts }]);
    }
  }

  /** Oldest first. */
  of(name: string): readonly Sample[] {
    return this.#samples.get(name) ?? [];
  }

  /** Pending tasks a second, more or fewer; undefined while it was seen only once. */
  rateOf(name: string): number | undefined {
    const samples = this.of(name);
    const last = samples.at(-1);
    const first = samples.find(({ at }) => at > (last?.at ?? 0) - rateWindowMs);
    if (!first || !last || last.at === first.at) return undefined;
    return ((last.pending - first.pending) * 1000) / (last.at - first.at);
  }
}

/** `+3.2/s`, `−120/s`, `±0`. */
export function rateText(perSecond: number | undefined): string {
  if (perSecond === undefined) return '–';
  const size = Math.abs(perSecond);
  if (size < 0.05) return '±0';
  const text = size < 10 ? size.toFixed(1) : Math.round(size).toLocaleString('en-US');
  return `${perSecond < 0 ? '−' : '+'}${text}/s`;
}
