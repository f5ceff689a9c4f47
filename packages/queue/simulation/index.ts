/**
 * Seeded simulation of the queue: servers that crash, stop and restart, handlers that are slow,
 * failing, hanging and flapping, clocks that jump, configs that change, schedules near a clock
 * change, jobs. See `scenario.ts` for the events, `witness.ts` and `judge.ts` for the invariants.
 */
import {
  runSeed,
  seeds,
  type Scenario,
  type SeedsReport,
  type Simulation,
} from '@millrace/kit/simulation';
import type { TaskStore } from '../src/storage/port/task-store.js';
import { withRealDisk } from './real-disk.js';
import { faults, runQueueScenario, type Tally } from './scenario.js';

export interface QueueSimulation extends SeedsReport {
  tally: Tally;
}

export interface QueueSimulationOptions {
  /** Default: 1. */
  first?: number;
  /** `embedded`: the real store on a real disk, which is slower. */
  store?: 'memory' | 'embedded';
  /** In the place of the memory store, to show that its faults are found. */
  newDisk?: () => TaskStore;
}

/** Runs a number of seeds; throws with the seed at the first failure. */
export async function simulateQueue(
  count: number,
  { first = 1, store = 'memory', newDisk }: QueueSimulationOptions = {},
): Promise<QueueSimulation> {
  const total: Partial<Tally> = {};
  const scenario: Scenario = async (world) => {
    const tally = await (store === 'memory'
      ? runQueueScenario(world, newDisk?.())
      : withRealDisk(world, (disk) => runQueueScenario(world, disk)));
    for (const [name, value] of Object.entries(tally) as [keyof Tally, number][]) {
      total[name] = (total[name] ?? 0) + value;
    }
  };
  // Background work of the engine does not depend on the seed.
  const repeatEvery = store === 'memory' ? 10 : 0;
  const report = await seeds(count, scenario, { first, faults, repeatEvery });
  return { ...report, tally: total as Tally };
}

/** One run with all events recorded, for comparing logs. */
export function simulateQueueOnce(seed: number): Promise<Simulation> {
  const scenario = async (world: Simulation) => void (await runQueueScenario(world));
  return runSeed(seed, scenario, { faults, keepEvents: Infinity });
}
