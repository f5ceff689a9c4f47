import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Answers a prompt on a free or local backend, or returns a degraded result. */
export function think(
  { thinker }: DaemonContext,
  { prompt }: DaemonSchema<'ThinkRequest'>,
  signal: AbortSignal,
): Promise<DaemonSchema<'ThinkResult'>> {
  return thinker.think(prompt, signal);
}
