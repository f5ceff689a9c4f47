import type { Clock } from '@millrace/kit/clock';

/** Runs a function every `everyMs`; returns the function that stops it. */
export function repeat(clock: Clock, everyMs: number, run: () => void): () => void {
  let timer = clock.after(everyMs, function again() {
    run();
    timer = clock.after(everyMs, again);
  });
  return () => timer.cancel();
}
