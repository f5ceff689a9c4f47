import { cpus, freemem, loadavg, platform, totalmem } from 'node:os';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import { formatTimestamp } from '@millrace/kit/units';
import { byId } from '../core/backend.js';
import { SharedRuns } from '../core/turns.js';
import type { Session, Sessions } from '../sessions/port.js';
import { treesOf, type ProcessReader, type TreeUse } from './processes.js';

export type Sample = DaemonSchema<'Metrics'>;
type AgentMetrics = DaemonSchema<'AgentMetrics'>;

/** Sources of the sampler. */
export interface Instruments {
  cpuTimes(): CpuTimes;
  memoryAndLoad(): Omit<Sample['system'], 'cpu_pct'>;
  processes: ProcessReader;
  daemonRss(): number;
  loopP99Ms(): number | null;
  /** Stops measuring. */
  letGo(): void;
}

export interface SamplerParts extends Instruments {
  clock: Clock;
  log: Log;
  sessions: Pick<Sessions, 'list'>;
}

/** Counters whose difference between two readings is the result. */
interface Reading {
  at: number;
  cpu: CpuTimes;
  /** By the process id of the agent. */
  trees: Map<number, TreeUse>;
}

/** Shares over a shorter interval are noise: the system counts in hundredths of a second. */
const minIntervalMs = 200;
/** Shares over a longer interval are out of date. */
const maxIntervalMs = 60_000;
/** A sample is reused for this long. */
const freshMs = 500;

/** Measures current resource usage of the machine, the agents and the daemon. */
export class Sampler {
  readonly #startedAt: number;
  readonly #takes: SharedRuns<Sample>;
  #reading: Reading | undefined;
  #latest: { at: number; sample: Sample } | undefined;
  #isBlind = false;

  constructor(private readonly parts: SamplerParts) {
    this.#startedAt = parts.clock.monotonic();
    this.#takes = new SharedRuns(() => this.#take());
  }

  /** A current sample, or a recent one. */
  async read(): Promise<Sample> {
    return this.#fresh() ?? this.#takes.run();
  }

  #fresh(): Sample | undefined {
    const { clock } = this.parts;
    const isFresh = this.#latest && clock.monotonic() - this.#latest.at < freshMs;
    return isFresh ? this.#latest?.sample : undefined;
  }

  async #take(): Promise<Sample> {
    // Concurrent callers share one measurement.
    const fresh = this.#fresh();
    if (fresh) return fresh;
    const { clock } = this.parts;
    const before = this.#before() ?? (await this.#first());
    const live = (await this.parts.sessions.list()).filter(isLive);
    const after = await this.#read(live);
    const sample = this.#sampleOf(live, before, after);
    this.#latest = { at: clock.monotonic(), sample };
    return sample;
  }

  /** The previous reading, if its age suits a rate. */
  #before(): Reading | undefined {
    const agoMs = this.#reading ? this.parts.clock.monotonic() - this.#reading.at : 0;
    return agoMs >= minIntervalMs && agoMs <= maxIntervalMs ? this.#reading : undefined;
  }

  async #first(): Promise<Reading> {
    const reading = await this.#read((await this.parts.sessions.list()).filter(isLive));
    await this.parts.clock.sleep(minIntervalMs);
    return reading;
  }

  async #read(live: readonly Session[]): Promise<Reading> {
    const { clock, cpuTimes } = this.parts;
    const pids = live.flatMap(({ pid }) => pid ?? []);
    // Without agents the process table is not read.
    const trees = pids.length === 0 ? new Map<number, TreeUse>() : await this.#trees(pids);
    this.#reading = { at: clock.monotonic(), cpu: cpuTimes(), trees };
    return this.#reading;
  }

  async #trees(pids: readonly number[]): Promise<Map<number, TreeUse>> {
    try {
      const trees = treesOf(await this.parts.processes(), pids);
      this.#isBlind = false;
      return trees;
    } catch (error) {
      if (!this.#isBlind) {
        this.parts.log.warn({ err: error }, 'failed to list processes');
      }
      this.#isBlind = true;
      return new Map();
    }
  }

  #sampleOf(live: readonly Session[], before: Reading, after: Reading): Sample {
    const { clock, memoryAndLoad, daemonRss, loopP99Ms } = this.parts;
    const cpu_pct = cpuPercent(before.cpu, after.cpu);
    return {
      taken_at: formatTimestamp(clock.now()),
      system: { cpu_pct, ...memoryAndLoad() },
      agents: live.map((session) => agentOf(session, before, after)).toSorted(byId),
      daemon: {
        rss: daemonRss(),
        event_loop_p99_ms: loopP99Ms(),
        uptime_s: hundredths((clock.monotonic() - this.#startedAt) / 1000),
      },
    };
  }
}

const ended: ReadonlySet<string> = new Set(['done', 'errored', 'orphaned']);

/** A rate-limited agent may have ended too: then it has an exit code. */
function isLive({ status, exit_code: exitCode }: Session): boolean {
  return !ended.has(status) && exitCode === null;
}

function agentOf({ id, pid, context_tokens }: Session, from: Reading, to: Reading): AgentMetrics {
  const [before, after] = [from, to].map(({ trees }) =>
    pid === null ? undefined : trees.get(pid),
  );
  const wallMs = to.at - from.at;
  const isMeasured = before && after && wallMs > 0;
  return {
    id,
    // CPU time of a child without a wait() is lost, so the sum can decrease.
    cpu_pct: isMeasured
      ? hundredths((Math.max(0, after.cpuMs - before.cpuMs) / wallMs) * 100)
      : null,
    rss: after?.rss ?? null,
    context_tokens,
  };
}

type SystemMetrics = DaemonSchema<'SystemMetrics'>;

/** CPU time of all cores since boot: used and total. */
export interface CpuTimes {
  busyMs: number;
  totalMs: number;
}

export function cpuTimes(): CpuTimes {
  let [busyMs, totalMs] = [0, 0];
  for (const { times } of cpus()) {
    const { user, nice, sys, idle, irq } = times;
    busyMs += user + nice + sys + irq;
    totalMs += user + nice + sys + irq + idle;
  }
  return { busyMs, totalMs };
}

/** CPU use of all cores between two readings; `null` when no time has passed. */
export function cpuPercent(before: CpuTimes, after: CpuTimes): number | null {
  const totalMs = after.totalMs - before.totalMs;
  if (totalMs <= 0) return null;
  const share = (after.busyMs - before.busyMs) / totalMs;
  return hundredths(Math.min(1, Math.max(0, share)) * 100);
}

export function memoryAndLoad(): Omit<SystemMetrics, 'cpu_pct'> {
  const total = totalmem();
  return {
    // Available memory, such as caches, does not count as used.
    mem_used: Math.max(0, total - freemem()),
    mem_total: total,
    load: platform() === 'win32' ? null : hundredths(loadavg()[0]!),
  };
}

/** Rounds away digits that are noise. */
export function hundredths(value: number): number {
  return Math.round(value * 100) / 100;
}

/** Sampling resolution: each sample wakes the process, without running JavaScript. */
const intervalMs = 200;
const windowMs = 15_000;
/** Minimum number of samples for a percentile. */
const fewest = 10;

type Histogram = Pick<
  ReturnType<typeof monitorEventLoopDelay>,
  'count' | 'percentile' | 'reset' | 'enable' | 'disable'
>;

/** Event loop delay: the 99th percentile of about the last 15 seconds. */
export class LoopDelay {
  readonly #histogram: Histogram;
  #since: number;
  #last: number | null = null;

  constructor(
    private readonly clock: Clock,
    histogram: Histogram = monitorEventLoopDelay({ resolution: intervalMs }),
  ) {
    this.#histogram = histogram;
    this.#since = clock.monotonic();
    histogram.enable();
  }

  p99Ms(): number | null {
    if (this.#histogram.count < fewest) return this.#last;
    // The histogram measures the time between two samples.
    const value = hundredths(Math.max(0, this.#histogram.percentile(99) / 1e6 - intervalMs));
    const now = this.clock.monotonic();
    if (now - this.#since >= windowMs) {
      this.#since = now;
      this.#last = value;
      this.#histogram.reset();
    }
    return value;
  }

  close(): void {
    this.#histogram.disable();
  }
}
