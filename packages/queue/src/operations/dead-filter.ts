import type { QueueSchema } from '@millrace/contract/queue';
import type { FieldError } from '@millrace/kit/errors';
import type { DeadFilter } from '../storage/port/task-store.js';
import { timeIn } from './base/time-in.js';

/** Reads a filter for dead tasks. `at` is the filter's location in the request. */
export function deadFilter(
  given: QueueSchema<'SelectorFilter'>,
  at: string,
  faults: FieldError[],
): DeadFilter {
  const { error_type, handler_ref, http_status, from, to } = given;
  return {
    errorType: error_type,
    handlerRef: handler_ref,
    httpStatus: http_status,
    diedFrom: from === undefined ? undefined : timeIn(from, `${at}/from`, faults),
    diedBefore: to === undefined ? undefined : timeIn(to, `${at}/to`, faults),
  };
}
