import type { QueueSchema } from '@millrace/contract/queue';

/** The process is up. Touches nothing. */
export function getLiveness(): QueueSchema<'LivenessResult'> {
  return { status: 'ok' };
}
