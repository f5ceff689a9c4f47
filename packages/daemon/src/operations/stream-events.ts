import type { EventFlow } from '../events/index.js';
import type { DaemonContext } from './context.js';

/** Streams changes after the given event id, or from now on, until the signal aborts. */
export function streamEvents(
  { events }: Pick<DaemonContext, 'events'>,
  lastEventId: string | undefined,
  signal: AbortSignal,
): EventFlow {
  return events.follow(lastEventId, signal);
}
