import { count } from '../../parts/format.js';
import { Status } from '../../parts/status.js';
import type { Plan } from './api.js';

/** How the first page of a query was found, and what would help when it was slow. */
export function PlanView({ plan }: { plan: Plan }) {
  const { index, full_scan, rows_scanned, rows_returned, sorted_in_memory, elapsed_ms } = plan;
  // Reading far more than one returns is what an index is for.
  const isWasteful = full_scan && rows_scanned > 1_000 && rows_scanned > rows_returned * 10;
  return (
    <div className="row db-plan" role="group" aria-label="How the query was carried out">
      <Status tone={isWasteful ? 'warn' : 'good'}>
        {full_scan ? 'whole collection read' : `index ${index || 'of ids'}`}
      </Status>
      <span>{count(rows_scanned)} rows read</span>
      <span>{count(rows_returned)} returned</span>
      {sorted_in_memory && <span>sorted in memory</span>}
      <span>{elapsed_ms.toFixed(elapsed_ms < 10 ? 1 : 0)} ms</span>
      {isWasteful && (
        <span className="muted">
          An index on the field would help: name it under <code>collections</code> in the database’s
          config.
        </span>
      )}
    </div>
  );
}
