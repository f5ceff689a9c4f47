import type { QueueContext } from './base/context.js';
import { requireQueue } from './base/find.js';
import { toWireConfig, type WireConfig } from './queue-config.js';

/** The stored config with every default filled in. */
export async function getQueueConfig(
  context: QueueContext,
  { queue }: { queue: string },
): Promise<WireConfig> {
  return toWireConfig(await requireQueue(context, queue));
}
