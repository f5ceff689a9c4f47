import type { QueueSchema } from '@millrace/contract/queue';
import { type QueueContext, requireQueue } from './base/context.js';

/** Sends one probe to the queue's callback. A failing target is a result, not an error. */
export async function testCallback(
  context: QueueContext,
  { queue }: { queue: string },
): Promise<QueueSchema<'CallbackTestResult'>> {
  return context.delivery.probe(await requireQueue(context, queue));
}
