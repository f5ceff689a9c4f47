import { platform } from 'node:os';
import { LoopDelay } from './loop-delay.js';
import { cpuTimes, memoryAndLoad } from './machine.js';
import { Metrics, type MetricsParts } from './metrics.js';
import { procReader } from './proc-files.js';
import { psReader } from './ps-program.js';
import type { Instruments } from './sampler.js';

export type { Metrics } from './metrics.js';

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
