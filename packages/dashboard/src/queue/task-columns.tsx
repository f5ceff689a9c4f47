import { count } from '../parts/format.js';
import { Id } from '../parts/id.js';
import type { Column } from '../parts/virtual-table.js';

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

export const attemptsColumn: Column<AnyTask> = {
  id: 'attempts',
  header: 'Attempts',
  width: '5rem',
  numeric: true,
  wideOnly: true,
  cell: ({ total_attempts: attempts }) => count(attempts),
};

export const idColumn: Column<AnyTask> = {
  id: 'id',
  header: 'Id',
  width: '9.5rem',
  wideOnly: true,
  cell: ({ id }) => (
    <span className="mono muted">
      <Id value={id} />
    </span>
  ),
};
