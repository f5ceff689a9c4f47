import type { Clock, Timer } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { Calls } from './calls/calls.js';
import type { Health } from './grpc/health.js';
import type { Listeners } from './listeners/listeners.js';

export interface DrainParts {
  calls: Calls;
  health: Health;
  listeners: Listeners;
  clock: Clock;
  log: Log;
  deadlineMs: number;
  /** What is still to be done when no other calls are under way. */
  lastWords: () => Promise<void>;
}

/** What comes after the deadline: time for callers to hear how their calls ended. */
const partingMs = 1_000;

/**
 * Ends the serving gently: health says so first, new calls are refused, watches end, calls under
 * way finish. Listeners stay open until then, so that whoever asks is told and not cut off.
 */
export async function drain(parts: DrainParts): Promise<void> {
  const { calls, health, listeners, clock, log, deadlineMs } = parts;
  health.stopServing();
  calls.beginDrain();
  const inTime = await before(clock, deadlineMs, calls.idle());
  if (!inTime) {
    log.warn({ deadline_ms: deadlineMs }, 'calls did not end in time and are cut');
  }
  // In time only followers are left, who would never end.
  await parts.lastWords();
  calls.cut();
  health.close();
  const cut = new AbortController();
  const timer = clock.after(partingMs, () => cut.abort());
  await listeners.close(cut.signal);
  timer.cancel();
}

/** True when the work ends before the time is up. */
async function before(clock: Clock, limitMs: number, work: Promise<void>): Promise<boolean> {
  let timer: Timer | undefined;
  const timeUp = new Promise<boolean>((resolve) => {
    timer = clock.after(limitMs, () => resolve(false));
  });
  try {
    return await Promise.race([work.then(() => true), timeUp]);
  } finally {
    timer?.cancel();
  }
}
