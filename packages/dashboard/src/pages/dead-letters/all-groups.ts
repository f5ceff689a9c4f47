import type { QueueSchema } from '@millrace/contract/queue';

type Filter = QueueSchema<'SelectorFilter'>;
type Group = QueueSchema<'DlqGroup'>;

export interface QueueGroup extends Group {
  queue: string;
}

/** The groups of all queues that match the filter, largest first. */
export function matchingGroups(groups: readonly QueueGroup[], filter: Filter): QueueGroup[] {
  const { error_type, handler_ref, http_status } = filter;
  return groups
    .filter(
      (group) =>
        (error_type === undefined || group.error_type === error_type) &&
        (handler_ref === undefined || group.handler_ref === handler_ref) &&
        (http_status === undefined || group.http_status === http_status),
    )
    .toSorted((a, b) => b.count - a.count);
}
