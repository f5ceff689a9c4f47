import type { Clock } from '@millrace/kit/clock';

/** Runs again and again, first after `everyMs`; returns what ends it. */
export function repeat(clock: Clock, everyMs: number, run: () => void): () => void {
  let timer = clock.after(everyMs, function again() {
    run();
    timer = clock.after(everyMs, again);
  });
  return () => timer.cancel();
}
