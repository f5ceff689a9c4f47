import type { Clock } from './clock.js';
import type { Random } from './random.js';
import type { Log } from './log.js';

/**
 * What a server may touch beyond its own memory. A composition root builds one; everything below
 * takes what it needs from it, so that a simulation can put another world in its place.
 */
export interface World {
  clock: Clock;
  random: Random;
  log: Log;
}
