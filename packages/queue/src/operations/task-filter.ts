import type { QueueSchema } from '@millrace/contract/queue';
import type { FieldError } from '@millrace/kit/errors';
import type { TaskFilter } from '../storage/port/task-list.js';
import { timeIn } from './base/time-in.js';

export interface GivenTaskFilter {
  status?: readonly QueueSchema<'TaskStatus'>[];
  handler_ref?: string;
  group_key?: string;
  from?: string;
  to?: string;
}

/** Reads a filter for tasks. `at` is the filter's location in the request. */
export function taskFilter(given: GivenTaskFilter, at: string, faults: FieldError[]): TaskFilter {
  const { status, handler_ref, group_key, from, to } = given;
  return {
    // In a fixed order, so that a cursor does not depend on the order in the request.
    statuses: status && [...new Set(status)].toSorted(),
    handlerRef: handler_ref,
    groupKey: group_key,
    createdFrom: from === undefined ? undefined : timeIn(from, `${at}/from`, faults),
    createdBefore: to === undefined ? undefined : timeIn(to, `${at}/to`, faults),
  };
}
