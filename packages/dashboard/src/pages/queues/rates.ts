export interface Sample {
  at: number;
  pending: number;
  inFlight: number;
  dead: number;
}

export type QueueCounts = Omit<Sample, 'at'> & { name: string };

/** Samples further apart give no rate. */
const maxSampleGapMs = 30_000;
export const historyMs = 15 * 60_000;

/**
 * Queue depths sampled while the queue pages are open. The server reports counts, not throughput,
 * so a rate is the net of submitted and finished tasks.
 */
export class QueueHistory {
  readonly #samples = new Map<string, Sample[]>();

  record(at: number, queues: readonly QueueCounts[]): void {
    const present = new Set(queues.map(({ name }) => name));
    for (const name of this.#samples.keys()) if (!present.has(name)) this.#samples.delete(name);
    for (const { name, ...counts } of queues) {
      const samples = this.#samples.get(name) ?? [];
      if (samples.at(-1)?.at === at) continue;
      const recent = samples.filter((sample) => sample.at > at - historyMs);
      this.#samples.set(name, [...recent, { at, ...counts }]);
    }
  }

  /** Oldest first. */
  of(name: string): readonly Sample[] {
    return this.#samples.get(name) ?? [];
  }

  /** Net change of pending tasks per second between the last two samples. */
  rateOf(name: string): number | undefined {
    const [previous, last] = this.of(name).slice(-2);
    if (!previous || !last || last.at - previous.at > maxSampleGapMs) return undefined;
    return ((last.pending - previous.pending) * 1000) / (last.at - previous.at);
  }

  /** All samples, to survive a reload of the tab. */
  toJSON(): unknown {
    return [...this.#samples];
  }

  static fromJSON(text: string | null): QueueHistory {
    const history = new QueueHistory();
    try {
      const stored = JSON.parse(text ?? '[]') as [string, Sample[]][];
      for (const [name, samples] of stored) history.#samples.set(name, samples);
    } catch {
      // What another version stored is worth nothing.
    }
    return history;
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
