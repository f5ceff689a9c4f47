import type { QueueSchema } from '@millrace/contract/queue';
import type { FieldError } from '@millrace/kit/errors';
import { auditToWire } from '../core/audit.js';
import type { QueueContext } from './base/context.js';
import { defaultPageSize, staleCursor, type CursorScope } from './base/cursors.js';
import { requireGrant, type Principal } from './base/principal.js';
import { failQuery } from './base/refusal.js';
import { timeIn } from './base/time-in.js';

export interface AuditQuery {
  queue?: string;
  from?: string;
  to?: string;
  limit?: number;
  cursor?: string;
}

/** The acts on queues of which the caller is admin, the newest first. */
export async function listAudit(
  { store, cursors }: QueueContext,
  caller: Principal,
  { queue, from, to, limit = defaultPageSize, cursor = '' }: AuditQuery,
): Promise<QueueSchema<'AuditPage'>> {
  if (queue !== undefined) requireGrant(caller, queue, 'admin');
  const faults: FieldError[] = [];
  const range = {
    from: from === undefined ? undefined : timeIn(from, '/from', faults),
    to: to === undefined ? undefined : timeIn(to, '/to', faults),
  };
  if (faults.length > 0) throw failQuery(faults);
  const scope: CursorScope = { list: 'audit', filter: { queue, ...range } };
  const beforeSeq = cursor === '' ? undefined : seqOf(cursors.open(scope, cursor));
  const records = await store.auditPage({
    ...range,
    queue,
    allowed: (name) => caller.grants.allows(name, 'admin'),
    beforeSeq,
    // One extra record shows whether there is another page.
    limit: limit + 1,
  });
  const page = records.slice(0, limit);
  const last = records.length > limit ? page.at(-1) : undefined;
  return {
    records: page.map(auditToWire),
    next_cursor: last ? cursors.seal(scope, [last.seq]) : '',
  };
}

function seqOf(opened: readonly unknown[] | undefined): number {
  if (!opened) throw staleCursor();
  return opened[0] as number;
}
