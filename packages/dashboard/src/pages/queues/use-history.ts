import type { QueueItem } from './api.js';
import { QueueHistory } from './rates.js';

// For as long as the tab is open, so that going from page to page loses nothing.
const history = new QueueHistory();

/** What was seen of the queues, this moment included. */
export function useHistory(queues: readonly QueueItem[] | undefined, seenAt: number): QueueHistory {
  const seen = queues?.map(({ name, summary: { pending, in_flight, dlq_depth } }) => ({
    name,
    pending,
    inFlight: in_flight,
    dead: dlq_depth,
  }));
  if (seen) history.see(seenAt, seen);
  return history;
}
