/**
 * Deterministic simulation: days of server time in seconds, reproducible from a seed.
 *
 * A `Simulation` is a `World` with virtual time. Code that takes clock, randomness and log from it
 * runs unchanged; time jumps from timer to timer, and all pending promises run in between. A
 * scenario runs servers on nodes, injects faults, and checks invariants at the end. The queue uses
 * it like this:
 *
 *     await seeds(200, async (world) => {
 *       const disk = new MemoryStore();               // outlives every crash
 *       const handlers = {
 *         slow: unreliable(world, { latencyMs: [5_000, 40_000] }),
 *         failing: unreliable(world, { latencyMs: [1, 50], failChance: 0.3 }),
 *         hanging: unreliable(world, { hangChance: 0.1 }),
 *         flapping: unreliable(world, { flapping: { upMs: [9e4, 3e5], downMs: [1e4, 6e4] } }),
 *       };
 *       const boot = () => {
 *         const node = world.node('queue-1');         // clock, random and log of its own
 *         const store = node.guard(disk, { name: 'store' });
 *         const call = node.guard({ post: callHandler(handlers) });
 *         node.start(() => runQueue({ ...node, store, call }));
 *         return node;
 *       };
 *       let node = boot();
 *       world.disturb([60_000, 600_000], () => {       // power cuts
 *         node.crash();                               // no timer fires, no promise settles
 *         world.clock.after(3_000, () => (node = boot()));
 *       });
 *       world.disturb([1e5, 1e6], () => node.jumpClock(world.between([-90_000, 90_000])));
 *
 *       const ids = await world.complete(submitMany(disk, 500));
 *       await world.runFor(6 * 3_600_000);
 *       world.stopFaults();
 *       await world.runUntil(() => disk.allSettled(ids), 3_600_000);
 *     }, { faults: { 'store.crash_after': 0.001, 'store.fail_after': 0.01 } });
 *
 * A failure names its seed and shows the last events; `MILLRACE_SEED=42` runs that seed alone.
 *
 * Rules for code under simulation:
 * - No setTimeout, Date.now() or Math.random(): only the world's. The journal's hash finds out.
 * - Real work, such as the database engine writing to a real disk, is announced by
 *   `world.pending(promise)`, or for a whole port by `node.guard(port, { io: true })`. Virtual
 *   time waits for it, and its answers arrive in the order of the calls. Announce the outermost
 *   promise only, and never one that itself waits for virtual time.
 * - A node that has crashed may run on to its next `await`, as no program can stop another in
 *   the middle of a line; what it calls through a guarded port then has no effect any more.
 */
import { Simulation, type SimulationOptions } from './simulation.js';

export { SimulationFailure, type GuardOptions, type Scope as SimulatedNode } from './scope.js';
export type { Journal, SimulationEvent } from './timeline.js';
export { runSeed, seeds, type Scenario, type SeedsOptions, type SeedsReport } from './seeds.js';
export { unreliable, type UnreliableOptions } from './unreliable.js';
export { Simulation, type SimulationOptions };

/** A simulation from a seed. `runFor` and `runUntil` advance its time. */
export function simulate(seed: number, options: SimulationOptions = {}): Simulation {
  return new Simulation(seed, options);
}
