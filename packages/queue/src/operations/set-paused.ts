import type { QueueContext } from './base/context.js';
import { queueNotFound } from './base/find.js';
import type { Principal } from './base/principal.js';

/** Stops or starts the claiming of a queue's tasks. */
export async function setPaused(
  { store, clock, delivery }: QueueContext,
  caller: Principal,
  queue: string,
  paused: boolean,
): Promise<void> {
  const now = clock.now();
  const isThere = await store.setPaused({ queue, paused, now, by: caller.principal });
  if (!isThere) throw queueNotFound(queue);
  delivery.queueChanged(queue);
}
