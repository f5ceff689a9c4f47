import { openApiYaml } from '@millrace/contract/documents';
import type { QueueSchema } from '@millrace/contract/queue';
import type { QueueContext } from './base/context.js';
import { fail } from './base/refusal.js';

const retryAfterMs = 5_000;

/** Readiness: fails while the server drains or its storage does not respond. */
export async function getReadiness({
  readiness,
}: QueueContext): Promise<QueueSchema<'ReadinessResult'>> {
  const problem = await readiness.check();
  if (problem === undefined) return { status: 'ready', checks: { storage: 'ok' } };
  throw fail('STORAGE_UNAVAILABLE', problem, { retryAfterMs });
}

/** The process is up. Touches nothing. */
export function getLiveness(): QueueSchema<'LivenessResult'> {
  return { status: 'ok' };
}

let known: string | undefined;

/** Returns the OpenAPI document as written. */
export function getOpenapi(): string {
  return (known ??= openApiYaml('queue'));
}
