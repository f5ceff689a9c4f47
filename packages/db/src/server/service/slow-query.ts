import type { Condition } from '@millrace/engine/query/filter';
import type { SortOrder } from '@millrace/engine/query/sort';
import type { PlanReport } from '@millrace/engine/query/source';
import type { CallContext } from './call.js';
import type { ServiceParts } from './parts.js';

export interface FinishedQuery {
  method: 'Find' | 'Aggregate';
  collection: string;
  query: { readonly condition: Condition; readonly order?: SortOrder | undefined };
  plan: PlanReport;
}

/** Logs a slow query with its plan, without the values of its filter, and counts it. */
export function logSlowQuery(
  parts: Pick<ServiceParts, 'log' | 'slowQueryMs' | 'slowQueries' | 'clock'>,
  context: CallContext,
  { method, collection, query, plan }: FinishedQuery,
): void {
  if (parts.slowQueryMs === 0 || plan.elapsedMs < parts.slowQueryMs) return;
  const { condition, order } = query;
  const shape = [shapeOf(condition), ...orderShape(order)].filter((part) => part !== '');
  parts.slowQueries.record({
    collection,
    condition,
    order,
    plan,
    shape: shape.join(', '),
    endedAt: parts.clock.now(),
  });
  parts.log.warn(
    {
      method,
      collection,
      principal: context.principal.id,
      filter: shapeOf(condition),
      plan: {
        index: plan.index,
        rows_scanned: plan.rowsScanned,
        rows_returned: plan.rowsReturned,
        full_scan: plan.fullScan,
        sorted_in_memory: plan.sortedInMemory,
        elapsed_ms: Math.round(plan.elapsedMs * 100) / 100,
      },
    },
    'slow query',
  );
}

function orderShape(order: SortOrder | undefined): string[] {
  if (!order || order.keys.length === 0) return [];
  const keys = order.keys.map(({ path, desc }) => `${path.text}${desc ? ' desc' : ''}`);
  return [`order by ${keys.join(', ')}`];
}

/**
 * `(age gt and (name eq or name prefix))`: values are left out because they may be personal data.
 */
function shapeOf(condition: Condition): string {
  switch (condition.kind) {
    case 'all':
      return '';
    case 'and':
    case 'or':
      return `(${condition.parts.map(shapeOf).join(` ${condition.kind} `)})`;
    case 'not':
      return `not ${shapeOf(condition.part)}`;
    case 'test':
      return `${condition.field.text} ${condition.op}`;
  }
}
