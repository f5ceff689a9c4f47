import { platform } from 'node:os';
import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Database } from '@millrace/engine';
import type { Timer } from '@millrace/kit/clock';
import { parseSince } from '../core/since.js';
import { History, parseStep } from './history.js';
import {
  Sampler,
  LoopDelay,
  cpuTimes,
  memoryAndLoad,
  type Sample,
  type SamplerParts,
  type Instruments,
} from './sampler.js';
import { procReader, psReader } from './processes.js';

export interface MetricsParts extends SamplerParts {
  database: Database;
  /** The setting `metrics`. */
  isRecording: boolean;
}

export interface HistoryQuery {
  since?: string | undefined;
  step?: string | undefined;
}

const intervalMs = 15_000;
/** Samples are taken shortly after a step begins, so that timer jitter never matters. */
const offsetMs = 500;
const defaultSince = '24h';

/** Resource usage of the machine, the agents and the daemon: current and recorded. */
export class Metrics {
  readonly #sampler: Sampler;
  #timer: Timer | undefined;
  #recording: Promise<void> = Promise.resolve();
  #isClosed = false;

  private constructor(
    private readonly parts: MetricsParts,
    private readonly records: History,
  ) {
    this.#sampler = new Sampler(parts);
  }

  static async open(parts: MetricsParts): Promise<Metrics> {
    return new Metrics(parts, new History(parts.database));
  }

  /** Starts recording, if enabled. */
  start(): void {
    if (this.parts.isRecording) this.#record();
  }

  read(): Promise<Sample> {
    return this.#sampler.read();
  }

  async history(query: HistoryQuery): Promise<DaemonSchema<'MetricsHistory'>> {
    const now = this.parts.clock.now();
    const since = parseSince(query.since ?? defaultSince, now);
    return this.records.read(since, parseStep(query.step), now);
  }

  /** Stops recording; pending writes finish. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#recording;
    this.parts.letGo();
  }

  #record(): void {
    this.#recording = this.#recordOnce().finally(() => {
      if (this.#isClosed) return;
      const { clock } = this.parts;
      const delayMs = intervalMs + offsetMs - (clock.now() % intervalMs);
      this.#timer = clock.after(delayMs, () => this.#record());
    });
  }

  /** A sample that fails is missing in the history; recording continues. */
  async #recordOnce(): Promise<void> {
    try {
      const sample = await this.#sampler.read();
      if (!this.#isClosed) await this.records.add(sample);
    } catch (error) {
      if (this.#isClosed) return;
      this.parts.log.error({ err: error }, 'failed to record metrics');
    }
  }
}

export interface OpenMetricsParts extends Omit<MetricsParts, keyof Instruments> {
  environment: Readonly<Record<string, string | undefined>>;
}

/** Metrics of this machine and process. */
export async function openMetrics({ environment, ...parts }: OpenMetricsParts): Promise<Metrics> {
  const { clock } = parts;
  const loop = new LoopDelay(clock);
  const metrics = await Metrics.open({
    ...parts,
    cpuTimes,
    memoryAndLoad,
    processes: platform() === 'linux' ? procReader() : psReader({ clock, environment }),
    daemonRss: () => process.memoryUsage.rss(),
    loopP99Ms: () => loop.p99Ms(),
    letGo: () => loop.close(),
  });
  metrics.start();
  return metrics;
}
