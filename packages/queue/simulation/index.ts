/**
 * The queue in a world made from a seed: servers that crash, stop and come back, handlers that are
 * slow, failing, hanging and flapping, clocks that jump, configs that change. See `scenario.ts` for
 * what happens, `witness.ts` and `judge.ts` for what must hold.
 */
import {
  runSeed,
  seeds,
  type Scenario,
  type SeedsReport,
  type Simulation,
} from '@millrace/kit/simulation';
import { withRealDisk } from './real-disk.js';
import { faults, runQueueScenario, type Tally } from './scenario.js';

export interface QueueSimulation extends SeedsReport {
  tally: Tally;
}

export interface QueueSimulationOptions {
  /** Without it: 1. */
  first?: number;
  /** `embedded`: the real store on a real disk, which takes its time. */
  store?: 'memory' | 'embedded';
}

/** Runs so many seeds; throws, naming the seed, at the first that goes wrong. */
export async function simulateQueue(
  count: number,
  { first = 1, store = 'memory' }: QueueSimulationOptions = {},
): Promise<QueueSimulation> {
  const total: Partial<Tally> = {};
  const scenario: Scenario = async (world) => {
    const tally = await (store === 'memory'
      ? runQueueScenario(world)
      : withRealDisk(world, (disk) => runQueueScenario(world, disk)));
    for (const [name, value] of Object.entries(tally) as [keyof Tally, number][]) {
      total[name] = (total[name] ?? 0) + value;
    }
  };
  // What the engine does by itself is not the seed's to decide.
  const repeatEvery = store === 'memory' ? 10 : 0;
  const report = await seeds(count, scenario, { first, faults, repeatEvery });
  return { ...report, tally: total as Tally };
}

/** One run with every event kept, for comparing logs. */
export function simulateQueueOnce(seed: number): Promise<Simulation> {
  const scenario = async (world: Simulation) => void (await runQueueScenario(world));
  return runSeed(seed, scenario, { faults, keepEvents: Infinity });
}
