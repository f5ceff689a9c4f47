import { UsageError } from '../base/errors.js';
import { SimulationFailure } from './scope.js';
import { Simulation, type SimulationOptions } from './simulation.js';

export type Scenario = (world: Simulation) => Promise<void>;

export interface SeedsOptions extends SimulationOptions {
  /** The first seed. Without it: 1. */
  first?: number;
  /** Runs this seed alone. Without it: what `MILLRACE_SEED` says. */
  only?: number;
  /** Every n-th seed is run twice, to prove that the run is deterministic. 0: none. */
  repeatEvery?: number;
}

export interface SeedsReport {
  runs: number;
  events: number;
  virtualMs: number;
  /** How often each fault struck, over all runs. */
  hits: ReadonlyMap<string, number>;
}

/** Runs a scenario with one seed. Whatever it throws becomes a failure that names the seed. */
export async function runSeed(
  seed: number,
  scenario: Scenario,
  options: SimulationOptions = {},
): Promise<Simulation> {
  const world = new Simulation(seed, options);
  try {
    await scenario(world);
    await world.settle();
  } catch (error) {
    if (error instanceof SimulationFailure) throw error;
    throw new SimulationFailure(seed, world.timeline.elapsedMs, world.journal.lines, error);
  }
  return world;
}

/** Runs a scenario with `count` seeds, one after the other, and stops at the first that fails. */
export async function seeds(
  count: number,
  scenario: Scenario,
  options: SeedsOptions = {},
): Promise<SeedsReport> {
  const { first = 1, only = seedFrom(process.env), repeatEvery = 10, ...rest } = options;
  const [from, runs] = only === undefined ? [first, count] : [only, 1];
  const hits = new Map<string, number>();
  const report = { runs, events: 0, virtualMs: 0, hits };
  for (let seed = from; seed < from + runs; seed++) {
    const world = await runSeed(seed, scenario, rest);
    report.events += world.journal.count;
    report.virtualMs += world.timeline.elapsedMs;
    for (const [name, times] of world.hits) hits.set(name, (hits.get(name) ?? 0) + times);
    if (repeatEvery > 0 && (seed - from) % repeatEvery === 0) {
      await compareWithSecondRun(world, scenario, rest);
    }
  }
  return report;
}

async function compareWithSecondRun(
  firstRun: Simulation,
  scenario: Scenario,
  options: SimulationOptions,
): Promise<void> {
  const { seed } = firstRun;
  const secondRun = await runSeed(seed, scenario, options);
  if (secondRun.journal.hash() === firstRun.journal.hash()) return;
  // Both once more, this time with every event at hand, to name the first difference.
  const whole = { ...options, keepEvents: Infinity };
  const a = await runSeed(seed, scenario, whole);
  const b = await runSeed(seed, scenario, whole);
  throw new Error(
    `seed ${seed} does not repeat, so something other than the seed decides: ` +
      firstDifference(a.journal.lines, b.journal.lines),
  );
}

function firstDifference(a: readonly string[], b: readonly string[]): string {
  for (let at = 0; at < Math.max(a.length, b.length); at++) {
    if (a[at] === b[at]) continue;
    return `event ${at} is "${a[at] ?? 'none'}" in one run and "${b[at] ?? 'none'}" in another`;
  }
  return 'two further runs did not differ';
}

function seedFrom(environment: Readonly<Record<string, string | undefined>>): number | undefined {
  const text = environment['MILLRACE_SEED'];
  if (!text) return undefined;
  if (/^\d{1,10}$/.test(text)) return Number(text);
  throw new UsageError(`$MILLRACE_SEED must be a whole number, not "${text}"`);
}
