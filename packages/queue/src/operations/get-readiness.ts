import type { QueueSchema } from '@millrace/contract/queue';
import type { QueueContext } from './context.js';
import { fail } from './refusal.js';

const retryAfterMs = 5_000;

/** Can the server take work? Not while it drains, nor while its storage does not answer. */
export async function getReadiness({
  readiness,
}: QueueContext): Promise<QueueSchema<'ReadinessResult'>> {
  const trouble = await readiness.look();
  if (trouble === undefined) return { status: 'ready', checks: { storage: 'ok' } };
  throw fail('STORAGE_UNAVAILABLE', trouble, { retryAfterMs });
}
