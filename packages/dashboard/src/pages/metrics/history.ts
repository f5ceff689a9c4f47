import type { DaemonSchema } from '@millrace/contract/daemon';

type Sample = DaemonSchema<'Metrics'>;

export interface Point {
  /** Unix seconds. */
  time: number;
  /** Undefined in a gap of the recording, so that the line breaks. */
  sample: Sample | undefined;
}

export type AgentField = 'context_tokens' | 'cpu_pct' | 'rss';

/** The samples, with a break at every gap of the recording. */
export function spaced({ samples, step_s }: DaemonSchema<'MetricsHistory'>): Point[] {
  const points: Point[] = [];
  for (const sample of samples) {
    const time = new Date(sample.taken_at).getTime() / 1000;
    const before = points.at(-1);
    if (before && time - before.time > 2.5 * step_s) {
      points.push({ time: before.time + step_s, sample: undefined });
    }
    points.push({ time, sample });
  }
  return points;
}

const shownAgents = 6;

/** One line for each of the agents with the highest values. */
export function agentSeries(
  points: readonly Point[],
  field: AgentField,
  names: ReadonlyMap<string, string>,
): { label: string; values: (number | null)[] }[] {
  const peaks = new Map<string, number>();
  for (const { sample } of points) {
    for (const agent of sample?.agents ?? []) {
      const value = agent[field];
      if (value !== null) peaks.set(agent.id, Math.max(peaks.get(agent.id) ?? 0, value));
    }
  }
  const chosen = [...peaks].sort((a, b) => b[1] - a[1]).slice(0, shownAgents);
  const labels = new Map<string, number>();
  return chosen.map(([id]) => {
    const name = names.get(id) ?? id.slice(-6);
    const seen = (labels.get(name) ?? 0) + 1;
    labels.set(name, seen);
    return {
      label: seen === 1 ? name : `${name} (${seen})`,
      values: points.map(
        ({ sample }) => sample?.agents.find((agent) => agent.id === id)?.[field] ?? null,
      ),
    };
  });
}
