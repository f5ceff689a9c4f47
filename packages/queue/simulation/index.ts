/**
 * Seeded simulation of the queue: servers that crash, stop and restart, handlers that are slow,
 * failing, hanging and flapping, clocks that jump, configs that change, schedules near a clock
 * change, jobs. See `scenario.ts` for the events, `witness.ts` and `judge.ts` for the invariants,
 * and `flows.ts` for tasks that depend on each other, wait and record steps.
 */
import {
  runSeed,
  seeds,
  type Scenario,
  type SeedsReport,
  type Simulation,
} from '@millrace/kit/simulation';
import type { TaskStore } from '../src/storage/port/task-store.js';
import { runFlowScenario, type FlowTally } from './flows.js';
import { withRealDisk } from './real-disk.js';
import { faults, runQueueScenario, type Tally } from './scenario.js';

export interface QueueSimulation<Counts = Tally> extends SeedsReport {
  tally: Counts;
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
export function simulateQueue(
  count: number,
  options: QueueSimulationOptions = {},
): Promise<QueueSimulation> {
  return simulate(runQueueScenario, count, options);
}

/** The same for flows: dependencies, steps, suspensions and signals. */
export function simulateFlows(
  count: number,
  options: QueueSimulationOptions = {},
): Promise<QueueSimulation<FlowTally>> {
  return simulate(runFlowScenario, count, options);
}

async function simulate<Counts extends object>(
  run: (world: Simulation, disk?: TaskStore) => Promise<Counts>,
  count: number,
  { first = 1, store = 'memory', newDisk }: QueueSimulationOptions,
): Promise<QueueSimulation<Counts>> {
  const total: Record<string, number> = {};
  const scenario: Scenario = async (world) => {
    const tally = await (store === 'memory'
      ? run(world, newDisk?.())
      : withRealDisk(world, (disk) => run(world, disk)));
    for (const [name, value] of Object.entries(tally) as [string, number][]) {
      total[name] = (total[name] ?? 0) + value;
    }
  };
  // Background work of the engine does not depend on the seed.
  const repeatEvery = store === 'memory' ? 10 : 0;
  const report = await seeds(count, scenario, { first, faults, repeatEvery });
  return { ...report, tally: total as Counts };
}

/** One run with all events recorded, for comparing logs. */
export function simulateQueueOnce(seed: number): Promise<Simulation> {
  const scenario = async (world: Simulation) => void (await runQueueScenario(world));
  return runSeed(seed, scenario, { faults, keepEvents: Infinity });
}
