import type { Clock } from '@millrace/kit/clock';
import type { TaskStore } from '../storage/port/task-store.js';
import type { InFlightTask } from './state/in-flight.js';
import type { StoreHealth } from './state/store-health.js';

export interface HandOverOptions {
  store: TaskStore;
  clock: Clock;
  health: StoreHealth;
  /** Ends the retries. */
  hasGivenUp: () => boolean;
}

/**
 * The handler continues on its own: its lease now lasts for `async_timeout_ms`, even if that is
 * shorter than the callback's. An `:extend` that came before the answer still counts.
 */
export function handOver(
  entry: InFlightTask,
  { store, clock, health, hasGivenUp }: HandOverOptions,
): Promise<void> {
  const { id, lease } = entry.task;
  const asyncTimeoutMs = entry.queue.config.callback.async_timeout_ms;
  return entry.serialize(async () => {
    for (let failures = 0; ; failures++) {
      try {
        if (!(await entry.isHeld(store, clock))) break;
        const now = clock.now();
        const end = { expiresAt: now + asyncTimeoutMs, replaces: lease.expiresAt };
        await store.extendLease({ id, token: lease.token, ...end, isAsync: true, now });
        return health.succeeded('extend');
      } catch (error) {
        const pauseMs = health.failed('extend', error, failures);
        if (hasGivenUp()) return;
        await clock.sleep(pauseMs);
      }
    }
    entry.state.series.lateAnswers.inc();
  });
}
