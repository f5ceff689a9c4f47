import type { Clock, Random } from './clock-and-random.js';
import type { Log } from './log.js';
import type { Tracer } from './tracing.js';

/**
 * The environment of a server: clock, randomness and log. The composition root creates one and
 * passes it down; a simulation passes a simulated one.
 */
export interface World {
  clock: Clock;
  random: Random;
  log: Log;
  /** Undefined: spans are not recorded. */
  tracer?: Tracer | undefined;
}
