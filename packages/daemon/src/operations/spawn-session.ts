import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Starts an agent, or returns the one that the same idempotency key has started. */
export function spawnSession(
  { sessions }: Pick<DaemonContext, 'sessions'>,
  request: DaemonSchema<'SpawnRequest'>,
  key: string | undefined,
): Promise<{ session: DaemonSchema<'Session'>; isReplay: boolean }> {
  // The prefix separates callers' keys from the daemon's own.
  const origin = key === undefined ? {} : { idempotencyKey: `api:${key}` };
  return sessions.spawn(request, origin);
}
