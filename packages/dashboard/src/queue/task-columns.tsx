import { count } from '../parts/format.js';
import { Id } from '../parts/id.js';
import { column, type Column } from '../parts/virtual-table.js';

/** What every row of tasks has. */
interface AnyTask {
  id: string;
  total_attempts: number;
}

interface Selection {
  selected: ReadonlySet<string>;
  onToggle: (id: string) => void;
  /** Selects the loaded tasks, or none when something is selected. */
  onToggleAll?: () => void;
  className?: string;
}

/** A checkbox for each task, and one for all. */
export function selectColumn({
  selected,
  onToggle,
  onToggleAll,
  className = '',
}: Selection): Column<AnyTask> {
  return {
    id: 'select',
    header: '',
    headerControl: onToggleAll && (
      <input
        type="checkbox"
        aria-label="Select all"
        checked={selected.size > 0}
        onChange={onToggleAll}
      />
    ),
    width: '1.5rem',
    cell: ({ id }) => (
      <input
        type="checkbox"
        className={`over-link ${className}`.trim()}
        aria-label={`Select ${id}`}
        checked={selected.has(id)}
        onChange={() => onToggle(id)}
      />
    ),
  };
}

export const attemptsColumn: Column<AnyTask> = column(
  'Attempts',
  '5rem',
  ({ total_attempts: attempts }) => count(attempts),
  { numeric: true, wideOnly: true },
);

export const idColumn: Column<AnyTask> = column(
  'Id',
  '9.5rem',
  ({ id }) => (
    <span className="mono muted">
      <Id value={id} />
    </span>
  ),
  { wideOnly: true },
);
