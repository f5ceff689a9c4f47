import { sleepOn } from '../base/clock-and-random.js';
import type { Simulation } from './simulation.js';

export interface UnreliableOptions {
  /** Latency of a response. */
  latencyMs?: readonly [low: number, high: number];
  /** Probability of a failure. */
  failChance?: number;
  /** How likely there is never an answer. */
  hangChance?: number;
  /** Up for a while, then down for a while: while it is down, everything fails. */
  flapping?: {
    upMs: readonly [low: number, high: number];
    downMs: readonly [low: number, high: number];
  };
}

/**
 * Somebody out there whom the code under test calls: a callback handler, a provider. Each call
 * answers `ok` or `failed`, or never; a signal ends the wait with its reason.
 */
export function unreliable(world: Simulation, temper: UnreliableOptions) {
  const isUp = temper.flapping ? flapping(world, temper.flapping) : () => true;
  return async (signal?: AbortSignal): Promise<'ok' | 'failed'> => {
    const hangs = world.chance(temper.hangChance ?? 0);
    const fails = world.chance(temper.failChance ?? 0);
    const latencyMs = hangs ? Infinity : world.between(temper.latencyMs ?? [0, 0]);
    await sleepOn(world.clock, latencyMs, signal);
    return fails || !isUp() ? 'failed' : 'ok';
  };
}

// Worked out when somebody asks, so that it leaves no timer behind that would never end.
function flapping(world: Simulation, { upMs, downMs }: NonNullable<UnreliableOptions['flapping']>) {
  let up = true;
  let until = world.between(upMs);
  return () => {
    while (until <= world.timeline.elapsedMs) {
      up = !up;
      until += Math.max(1, world.between(up ? upMs : downMs));
    }
    return up;
  };
}
