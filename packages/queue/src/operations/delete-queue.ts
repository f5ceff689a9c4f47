import type { QueueContext } from './base/context.js';
import { queueNotFound } from './base/find.js';
import type { Principal } from './base/principal.js';
import { fail } from './base/refusal.js';

/** Deletes a queue that has nothing left to do. */
export async function deleteQueue(
  { store, clock, delivery }: QueueContext,
  caller: Principal,
  { queue }: { queue: string },
): Promise<void> {
  const outcome = await store.deleteQueue({ queue, now: clock.now(), by: caller.principal });
  if (outcome === 'not_found') throw queueNotFound(queue);
  if (outcome === 'not_empty') {
    throw fail(
      'QUEUE_NOT_EMPTY',
      `The queue ${queue} has pending, running or dead tasks; let them finish or purge them first.`,
    );
  }
  delivery.queueDeleted(queue);
}
