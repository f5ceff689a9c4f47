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
  /** Runs when no other calls are in flight, before connections close. */
  beforeClose: () => Promise<void>;
}

/** Time after the deadline for callers to receive the status of their calls. */
const minCloseMs = 1_000;

/**
 * Graceful shutdown: health reports it first, new calls are refused, watches end and calls in
 * flight finish. Listeners stay open until then, so that callers receive a status. A call is
 * finished when its answer is queued; a caller that reads slowly has the rest of the time for it.
 */
export async function drain(parts: DrainParts): Promise<void> {
  const { calls, health, listeners, clock, log, deadlineMs } = parts;
  const endsAt = clock.monotonic() + deadlineMs;
  health.stopServing();
  calls.beginDrain();
  const inTime = await before(clock, deadlineMs, calls.idle());
  if (!inTime) {
    log.warn({ deadline_ms: deadlineMs }, 'drain deadline exceeded, aborting calls');
  }
  // Only followers may be left now; their streams never end by themselves.
  await parts.beforeClose();
  calls.cut();
  health.close();
  const cut = new AbortController();
  const leftMs = Math.max(minCloseMs, endsAt - clock.monotonic());
  const timer = clock.after(leftMs, () => {
    if (leftMs > minCloseMs) log.warn({ deadline_ms: deadlineMs }, 'unread answers dropped');
    cut.abort();
  });
  await listeners.close(cut.signal);
  timer.cancel();
}

/** Whether the work ends within the limit. */
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
