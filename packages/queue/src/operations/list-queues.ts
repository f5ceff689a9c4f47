import type { QueueSchema } from '@millrace/contract/queue';
import type { QueueContext } from './base/context.js';
import { timeText } from './base/envelope.js';
import { toStats } from './get-stats.js';
import type { Principal } from './base/principal.js';

/** The queues on which the caller is admin, by name. */
export async function listQueues(
  { store, clock, delivery }: QueueContext,
  caller: Principal,
): Promise<QueueSchema<'QueueList'>> {
  const queues = await store.listQueues();
  const granted = queues
    .filter(({ name }) => caller.grants.allows(name, 'admin'))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const now = clock.now();
  const list: QueueSchema<'QueueList'> = [];
  for (const { name, paused, config, version, updatedAt } of granted) {
    list.push({
      name,
      summary: {
        paused,
        ...toStats(await store.counts(name), now),
        callback_url: config.callback.url ?? null,
        breaker: delivery.breakerOf(name),
        version,
        updated_at: timeText(updatedAt),
      },
    });
  }
  return list;
}
