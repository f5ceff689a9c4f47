import { Refusal } from '@millrace/kit/errors';
import { rest } from '../base/rest.js';

/** Like `rest`, but returns when `signal` is aborted. */
export async function restUntil(delayMs: number, signal: AbortSignal): Promise<void> {
  try {
    await rest(delayMs, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

const maxTries = 6;
const firstDelayMs = 250;
const maxDelayMs = 5_000;

/**
 * Retries safe requests while the server is busy, its storage is unavailable or the connection
 * breaks; not if no server is there at all.
 */
export async function patiently<Result>(
  work: () => Promise<Result>,
  signal: AbortSignal,
): Promise<Result> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (tries === maxTries || !(error instanceof Refusal) || !isPassing(error)) throw error;
      const { retryAfterMs = Math.min(maxDelayMs, firstDelayMs * 2 ** tries) } = error.extra;
      await rest(Math.min(retryAfterMs, maxDelayMs), signal);
    }
  }
}

function isPassing({ code, extra }: Refusal): boolean {
  if (code === 'RATE_LIMITED' || code === 'STORAGE_UNAVAILABLE') return true;
  const { cause } = extra;
  return cause instanceof Error && 'code' in cause && cause.code === 'ECONNRESET';
}
