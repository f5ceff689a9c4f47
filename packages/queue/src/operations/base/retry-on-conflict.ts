import { fail } from './refusal.js';

const maxTries = 8;

/**
 * Changes a record by compare-and-set: `change` runs again if another call or a background task
 * came in between. `what` is for the refusal.
 */
export async function retryOnConflict<Result>(
  what: string,
  change: () => Promise<Result | 'conflict'>,
): Promise<Result> {
  for (let tries = 0; tries < maxTries; tries++) {
    const result = await change();
    if (result !== 'conflict') return result;
  }
  throw fail('RATE_LIMITED', `${what} keeps changing; try again in a moment.`, {
    retryAfterMs: 1_000,
  });
}
