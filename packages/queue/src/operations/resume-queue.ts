import type { QueueContext } from './base/context.js';
import type { Principal } from './base/principal.js';
import { setPaused } from './set-paused.js';

/** Tasks of the queue are started again. */
export function resumeQueue(
  context: QueueContext,
  caller: Principal,
  { queue }: { queue: string },
): Promise<void> {
  return setPaused(context, caller, queue, false);
}
