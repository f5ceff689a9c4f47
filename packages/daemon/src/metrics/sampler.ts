import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import { formatTimestamp } from '@millrace/kit/units';
import { SharedRuns } from '../core/turns.js';
import type { Session, Sessions } from '../sessions/port.js';
import { cpuPercent, hundredths, type CpuTimes } from './machine.js';
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
  readonly #parts: SamplerParts;
  readonly #startedAt: number;
  readonly #takes: SharedRuns<Sample>;
  #reading: Reading | undefined;
  #latest: { at: number; sample: Sample } | undefined;
  #isBlind = false;

  constructor(parts: SamplerParts) {
    this.#parts = parts;
    this.#startedAt = parts.clock.monotonic();
    this.#takes = new SharedRuns(() => this.#take());
  }

  /** A current sample, or a recent one. */
  async read(): Promise<Sample> {
    return this.#fresh() ?? this.#takes.run();
  }

  #fresh(): Sample | undefined {
    const { clock } = this.#parts;
    const isFresh = this.#latest && clock.monotonic() - this.#latest.at < freshMs;
    return isFresh ? this.#latest?.sample : undefined;
  }

  async #take(): Promise<Sample> {
    // Concurrent callers share one measurement.
    const fresh = this.#fresh();
    if (fresh) return fresh;
    const { clock } = this.#parts;
    const before = this.#before() ?? (await this.#first());
    const live = (await this.#parts.sessions.list()).filter(isLive);
    const after = await this.#read(live);
    const sample = this.#sampleOf(live, before, after);
    this.#latest = { at: clock.monotonic(), sample };
    return sample;
  }

  /** The previous reading, if its age suits a rate. */
  #before(): Reading | undefined {
    const agoMs = this.#reading ? this.#parts.clock.monotonic() - this.#reading.at : 0;
    return agoMs >= minIntervalMs && agoMs <= maxIntervalMs ? this.#reading : undefined;
  }

  async #first(): Promise<Reading> {
    const reading = await this.#read((await this.#parts.sessions.list()).filter(isLive));
    await this.#parts.clock.sleep(minIntervalMs);
    return reading;
  }

  async #read(live: readonly Session[]): Promise<Reading> {
    const { clock, cpuTimes } = this.#parts;
    const pids = live.flatMap(({ pid }) => pid ?? []);
    // Without agents the process table is not read.
    const trees = pids.length === 0 ? new Map<number, TreeUse>() : await this.#trees(pids);
    this.#reading = { at: clock.monotonic(), cpu: cpuTimes(), trees };
    return this.#reading;
  }

  async #trees(pids: readonly number[]): Promise<Map<number, TreeUse>> {
    try {
      const trees = treesOf(await this.#parts.processes(), pids);
      this.#isBlind = false;
      return trees;
    } catch (error) {
      if (!this.#isBlind) {
        this.#parts.log.warn({ err: error }, 'failed to list processes');
      }
      this.#isBlind = true;
      return new Map();
    }
  }

  #sampleOf(live: readonly Session[], before: Reading, after: Reading): Sample {
    const { clock, memoryAndLoad, daemonRss, loopP99Ms } = this.#parts;
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

function byId(one: { id: string }, other: { id: string }): number {
  return one.id < other.id ? -1 : Number(one.id > other.id);
}
