import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Starts an agent, or answers the one that the same key has started. */
export function spawnSession(
  { sessions }: Pick<DaemonContext, 'sessions'>,
  request: DaemonSchema<'SpawnRequest'>,
  key: string | undefined,
): Promise<{ session: DaemonSchema<'Session'>; isReplay: boolean }> {
  // The daemon's own keys cannot be guessed at from outside.
  const origin = key === undefined ? {} : { idempotencyKey: `api:${key}` };
  return sessions.spawn(request, origin);
}
