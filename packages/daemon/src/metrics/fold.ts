import { formatTimestamp } from '@millrace/kit/units';
import { hundredths } from './machine.js';
import type { Sample } from './sampler.js';

/** Sum and count of the known values. */
type Mean = [sum: number, count: number];

/** Aggregate of the samples of one interval. Stored as JSON, so the names are short. */
export interface Fold {
  cpu: Mean;
  mem: Mean;
  load: Mean;
  rss: Mean;
  p99: Mean;
  /** From the last sample: an average across a restart is meaningless. */
  memTotal: number;
  uptime: number;
  agents: Record<string, { cpu: Mean; rss: Mean; context: Mean }>;
}

export function foldOf({ system, agents, daemon }: Sample): Fold {
  return {
    cpu: meanOf(system.cpu_pct),
    mem: meanOf(system.mem_used),
    load: meanOf(system.load),
    rss: meanOf(daemon.rss),
    p99: meanOf(daemon.event_loop_p99_ms),
    memTotal: system.mem_total,
    uptime: daemon.uptime_s,
    agents: Object.fromEntries(
      agents.map(({ id, cpu_pct, rss, context_tokens }) => [
        id,
        { cpu: meanOf(cpu_pct), rss: meanOf(rss), context: meanOf(context_tokens) },
      ]),
    ),
  };
}

/** Adds `next`, the later one, to `before` in place: thousands are merged at a time. */
export function joined(before: Fold | undefined, next: Fold): Fold {
  if (!before) return next;
  for (const name of ['cpu', 'mem', 'load', 'rss', 'p99'] as const) add(before[name], next[name]);
  before.memTotal = next.memTotal;
  before.uptime = next.uptime;
  for (const [id, figures] of Object.entries(next.agents)) {
    const existing = before.agents[id];
    if (!existing) before.agents[id] = figures;
    else {
      add(existing.cpu, figures.cpu);
      add(existing.rss, figures.rss);
      add(existing.context, figures.context);
    }
  }
  return before;
}

/** The averages as a sample that starts at `at`. */
export function sampleOf(fold: Fold, at: number): Sample {
  return {
    taken_at: formatTimestamp(at),
    system: {
      cpu_pct: fine(fold.cpu),
      mem_used: whole(fold.mem) ?? 0,
      mem_total: fold.memTotal,
      load: fine(fold.load),
    },
    agents: Object.entries(fold.agents)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([id, { cpu, rss, context }]) => ({
        id,
        cpu_pct: fine(cpu),
        rss: whole(rss),
        context_tokens: whole(context),
      })),
    daemon: {
      rss: whole(fold.rss) ?? 0,
      event_loop_p99_ms: fine(fold.p99),
      uptime_s: fold.uptime,
    },
  };
}

function meanOf(value: number | null): Mean {
  return value === null ? [0, 0] : [value, 1];
}

function add(sum: Mean, more: Mean): void {
  sum[0] += more[0];
  sum[1] += more[1];
}

function fine([total, count]: Mean): number | null {
  return count === 0 ? null : hundredths(total / count);
}

function whole([total, count]: Mean): number | null {
  return count === 0 ? null : Math.round(total / count);
}
