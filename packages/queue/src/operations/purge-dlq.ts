import type { QueueSchema } from '@millrace/contract/queue';
import type { QueueContext } from './base/context.js';
import { walkDead } from './dead-walk.js';
import { requireQueue } from './base/find.js';
import type { Principal } from './base/principal.js';
import { readSelector } from './selector.js';

/** Deletes dead tasks for good; a tombstone keeps each id for a day. */
export async function purgeDlq(
  context: QueueContext,
  caller: Principal,
  { queue, body: given }: { queue: string; body: unknown },
): Promise<QueueSchema<'SelectorResult'>> {
  const { store, clock, checks } = context;
  await requireQueue(context, queue);
  const body = checks.purge.read(given);
  const startedAt = clock.now();
  return walkDead(context, {
    queue,
    selector: readSelector(body),
    startedAt,
    isDryRun: body.dry_run ?? false,
    act: async (ids) => {
      const deleted = await store.purge({
        queue,
        ids,
        diedBy: startedAt,
        now: clock.now(),
        by: caller.principal,
        selector: body,
      });
      return deleted.length;
    },
  });
}
