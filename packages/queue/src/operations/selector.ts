import type { QueueSchema } from '@millrace/contract/queue';
import type { FieldError } from '@millrace/kit/errors';
import type { DeadFilter } from '../storage/port/task-store.js';
import { deadFilter } from './dead-filter.js';
import { failBody } from './base/refusal.js';

/** The selection of dead tasks for a redrive or purge. */
export type Selector = { ids: readonly string[] } | { filter: DeadFilter; isWhole: boolean };

export function readSelector(
  body: QueueSchema<'RedriveSelector'> | QueueSchema<'PurgeSelector'>,
): Selector {
  if (body.ids) return { ids: [...new Set(body.ids.map((id) => id.toUpperCase()))] };
  const faults: FieldError[] = [];
  const given = body.filter!;
  const filter = deadFilter(given, '/filter', faults);
  if (faults.length > 0) throw failBody('INVALID_SELECTOR', faults);
  return { filter, isWhole: Object.keys(given).length === 0 };
}
