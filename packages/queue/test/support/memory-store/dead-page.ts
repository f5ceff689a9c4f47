import type { WholeTask } from '../../../src/core/task.js';
import { deadFacts, matchesDeadFilter, pageBytes } from '../../../src/storage/port/store-parts.js';
import type { DeadTaskQuery, DeadPage } from '../../../src/storage/port/task-store.js';
import { compareText } from './claim-order.js';

/** The requested page of these dead tasks. */
export function deadPage(dead: readonly WholeTask[], query: DeadTaskQuery): DeadPage {
  const sign = query.order === 'oldest_first' ? 1 : -1;
  const order = (a: Place, b: Place) => sign * (a.deadAt! - b.deadAt! || compareText(a.id, b.id));
  const { after } = query;
  const matching = dead
    .filter((task) => matchesDeadFilter(deadFacts(task), query.filter))
    .filter((task) => !after || order(task, after) > 0)
    .toSorted(order);
  const page: DeadPage = { tasks: [], next: undefined };
  let bytes = 0;
  for (const task of matching) {
    bytes += pageBytes(task);
    const last = page.tasks.at(-1);
    if (last && (page.tasks.length >= query.limit || bytes > query.maxBytes)) {
      page.next = { deadAt: last.deadAt!, id: last.id };
      break;
    }
    page.tasks.push(task);
  }
  return page;
}

interface Place {
  deadAt: number | null;
  id: string;
}
