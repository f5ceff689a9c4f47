import { parseFilter } from '../engine/query/filter.js';
import { plainFilter } from '../engine/query/plain-query.js';

/** Checks a filter in either form before it is sent. Refuses BAD_FILTER. */
export function checkFilter(filter: unknown): void {
  parseFilter(plainFilter(filter));
}
