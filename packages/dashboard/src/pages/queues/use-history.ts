import type { QueueItem } from '../../queue/api.js';
import { QueueHistory } from './rates.js';

const storedName = 'millrace.queue-history';

// Lives as long as the tab, so that neither navigation nor a reload empties the chart.
const history = QueueHistory.fromJSON(sessionStorage.getItem(storedName));
addEventListener('pagehide', () => {
  try {
    sessionStorage.setItem(storedName, JSON.stringify(history));
  } catch {
    // Storage is full or forbidden: the chart starts anew.
  }
});

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
