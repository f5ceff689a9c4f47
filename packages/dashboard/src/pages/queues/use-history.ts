import type { QueueItem } from './api.js';
import { QueueHistory } from './rates.js';

// Lives as long as the tab, so that navigation between pages loses nothing.
const history = new QueueHistory();

/** The samples of all queues, including the current ones. */
export function useHistory(queues: readonly QueueItem[] | undefined, readAt: number): QueueHistory {
  const counts = queues?.map(({ name, summary: { pending, in_flight, dlq_depth } }) => ({
    name,
    pending,
    inFlight: in_flight,
    dead: dlq_depth,
  }));
  if (counts) history.record(readAt, counts);
  return history;
}
