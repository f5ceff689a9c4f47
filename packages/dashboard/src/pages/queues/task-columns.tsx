import { Link } from 'wouter';
import { Time } from '../../parts/time.js';
import { column, type Column } from '../../parts/virtual-table.js';
import type { TaskRow } from '../../queue/api.js';
import { attemptsColumn, idColumn, selectColumn } from '../../queue/task-columns.js';

interface ColumnParts {
  status: TaskRow['status'];
  selected: ReadonlySet<string>;
  isSelectable: boolean;
  isNarrow: boolean;
  onToggle: (id: string) => void;
  /** Selects the loaded tasks, or none when something is selected. */
  onToggleAll: () => void;
}

/** The columns that matter for tasks of a status. */
export function taskColumns(parts: ColumnParts): Column<TaskRow>[] {
  const isDead = parts.status === 'DEAD';
  return [
    ...(parts.isSelectable ? [selectColumn(parts)] : []),
    column(
      'Handler',
      isDead ? 'minmax(0, 2fr)' : 'minmax(0, 3fr)',
      ({ id, handler_ref, last_error }) => (
        <>
          <Link href={`/tasks/${id}`} className="row-link">
            {handler_ref}
          </Link>
          {isDead && parts.isNarrow && <LastError error={last_error} />}
        </>
      ),
    ),
    column(
      isDead ? 'Error' : 'Group',
      isDead ? 'minmax(0, 7fr)' : 'minmax(0, 2fr)',
      ({ last_error, group_key }) =>
        isDead ? (
          <LastError error={last_error} />
        ) : (
          <span className="muted">{group_key ?? ''}</span>
        ),
      { wideOnly: true },
    ),
    attemptsColumn,
    column('Priority', '4.5rem', ({ priority }) => priority, { numeric: true, wideOnly: true }),
    idColumn,
    column('Submitted', '6rem', ({ created_at }) => <Time at={created_at} />, { wideOnly: true }),
    lastColumn(parts.status),
  ];
}

function LastError({ error }: { error: TaskRow['last_error'] }) {
  if (!error) return null;
  const { error_type, http_status, message } = error;
  return (
    <div className="ellipsis" title={message}>
      {error_type} <span className="muted">{http_status ?? message}</span>
    </div>
  );
}

function lastColumn(status: TaskRow['status']): Column<TaskRow> {
  if (status === 'PENDING') {
    return column('Next attempt', '7rem', ({ next_attempt_at, waiting_for }) => (
      <span title={waiting_for ? `waiting for: ${waiting_for}` : undefined}>
        <Time at={next_attempt_at} />
      </span>
    ));
  }
  if (status === 'IN_FLIGHT') {
    return column('Lease ends', '7rem', (task) => <Time at={task.lease_expires_at} />);
  }
  return column(status === 'DEAD' ? 'Dead at' : 'Completed', '7rem', (task) => (
    <Time at={task.dead_at ?? task.completed_at} />
  ));
}
