import { parseFilter } from '@millrace/engine/query/filter';
import { plainFilter } from '@millrace/engine/query/plain-query';

/** Checks a filter in either form before it is sent. Refuses BAD_FILTER. */
export function checkFilter(filter: unknown): void {
  parseFilter(plainFilter(filter));
}
