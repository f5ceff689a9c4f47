import type { Clock } from './clock.js';
import type { Random } from './random.js';
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
