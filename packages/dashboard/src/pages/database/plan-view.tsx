import { count } from '../../parts/format.js';
import { Status } from '../../parts/status.js';
import type { Plan } from './api.js';

/** The query plan of the first page, with a hint when an index would help. */
export function PlanView({ plan }: { plan: Plan }) {
  const { index, full_scan, rows_scanned, rows_returned, sorted_in_memory, elapsed_ms } = plan;
  const discardsRows = full_scan && rows_scanned > rows_returned;
  // An index pays off when most of the rows read are thrown away.
  const needsIndex = discardsRows && rows_scanned > 1_000 && rows_scanned > rows_returned * 10;
  const tone = discardsRows ? 'warn' : full_scan ? 'calm' : 'good';
  return (
    <div className="row db-plan" role="group" aria-label="Query plan">
      <Status tone={tone}>{full_scan ? 'full scan' : `index ${index || 'primary'}`}</Status>
      <span>{count(rows_scanned)} rows scanned</span>
      <span>{count(rows_returned)} returned</span>
      {sorted_in_memory && <span>sorted in memory</span>}
      <span>{elapsed_ms.toFixed(elapsed_ms < 10 ? 1 : 0)} ms</span>
      {needsIndex && (
        <span className="muted">
          Add an index on the field: list it under <code>collections</code> in the database config.
        </span>
      )}
    </div>
  );
}
