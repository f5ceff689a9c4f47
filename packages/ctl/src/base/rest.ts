import { systemClock } from '@millrace/kit/clock';

/** Node's maximum timer; it only keeps the event loop alive. */
const maxTimerMs = 2 ** 31 - 1;

/** The clock's own timers do not keep the process alive, but a waiting command must. */
export async function rest(delayMs: number, signal?: AbortSignal): Promise<void> {
  const alive = setInterval(() => undefined, maxTimerMs);
  try {
    await systemClock.sleep(delayMs, signal);
  } finally {
    clearInterval(alive);
  }
}
