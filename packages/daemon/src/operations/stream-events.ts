import type { EventFlow } from '../events/index.js';
import type { DaemonContext } from './context.js';

/** The changes after the event of that id, or from now on, until the signal ends it. */
export function streamEvents(
  { events }: Pick<DaemonContext, 'events'>,
  lastEventId: string | undefined,
  signal: AbortSignal,
): EventFlow {
  return events.follow(lastEventId, signal);
}
