import type { QueueContext } from './base/context.js';
import type { Principal } from './base/principal.js';
import { setPaused } from './set-paused.js';

/** No task of the queue is started until it is resumed. Running ones finish. */
export function pauseQueue(
  context: QueueContext,
  caller: Principal,
  { queue }: { queue: string },
): Promise<void> {
  return setPaused(context, caller, queue, true);
}
