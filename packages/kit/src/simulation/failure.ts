import { messageOf } from '../base/errors.js';
import { formatDuration } from '../base/units.js';

const shownEvents = 25;

/** A failed run, with the seed that reproduces it and the last events. */
export class SimulationFailure extends Error {
  override readonly name = 'SimulationFailure';

  constructor(
    readonly seed: number,
    elapsedMs: number,
    lines: readonly string[],
    cause: unknown,
  ) {
    const last = lines.slice(-shownEvents);
    const report = [
      `seed ${seed} failed after ${formatDuration(Math.floor(elapsedMs))} of virtual time: ${messageOf(cause)}`,
      `the last ${last.length} events:`,
      ...last.map((line) => `  ${line}`),
      `to run this seed alone: MILLRACE_SEED=${seed}`,
    ];
    super(report.join('\n'), { cause });
  }
}
