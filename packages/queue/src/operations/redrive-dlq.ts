import type { QueueSchema } from '@millrace/contract/queue';
import type { QueueContext } from './base/context.js';
import { walkDead } from './dead-walk.js';
import { requireQueue } from './base/find.js';
import type { Principal } from './base/principal.js';
import { readSelector } from './selector.js';

const defaultRate = 500;

/** Time between the starts of two redriven tasks. */
export function redriveGapMs({ rate_per_second: perSecond = defaultRate }): number {
  return perSecond === 0 ? 0 : 1000 / perSecond;
}

/** Requeues dead tasks, with their starts spread over time. */
export async function redriveDlq(
  context: QueueContext,
  caller: Principal,
  { queue, body: given }: { queue: string; body: unknown },
): Promise<QueueSchema<'SelectorResult'>> {
  const { store, clock, checks } = context;
  await requireQueue(context, queue);
  const body = checks.redrive.read(given);
  const startedAt = clock.now();
  const gapMs = redriveGapMs(body);
  return walkDead(context, {
    queue,
    selector: readSelector(body),
    startedAt,
    isDryRun: body.dry_run ?? false,
    act: async (ids, before) => {
      const changed = await store.redrive({
        queue,
        ids,
        diedBy: startedAt,
        now: clock.now(),
        by: caller.principal,
        selector: body,
        dueAt: (index) => startedAt + Math.floor((before + index) * gapMs),
      });
      return changed.length;
    },
  });
}
