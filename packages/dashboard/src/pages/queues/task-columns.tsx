import { Link } from 'wouter';
import { Time } from '../../parts/time.js';
import type { Column } from '../../parts/virtual-table.js';
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
    {
      id: 'handler',
      header: 'Handler',
      width: 'minmax(0, 3fr)',
      cell: ({ id, handler_ref, last_error }) => (
        <>
          <Link href={`/tasks/${id}`} className="row-link">
            {handler_ref}
          </Link>
          {isDead && parts.isNarrow && <LastError error={last_error} />}
        </>
      ),
    },
    {
      id: 'what',
      header: isDead ? 'Error' : 'Group',
      width: 'minmax(0, 2fr)',
      wideOnly: true,
      cell: ({ last_error, group_key }) =>
        isDead ? (
          <LastError error={last_error} />
        ) : (
          <span className="muted">{group_key ?? ''}</span>
        ),
    },
    attemptsColumn,
    {
      id: 'priority',
      header: 'Priority',
      width: '4.5rem',
      numeric: true,
      wideOnly: true,
      cell: ({ priority }) => priority,
    },
    idColumn,
    {
      id: 'created',
      header: 'Submitted',
      width: '6rem',
      wideOnly: true,
      cell: ({ created_at }) => <Time at={created_at} />,
    },
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
  const column = { id: 'last', width: '7rem' };
  if (status === 'PENDING') {
    return {
      ...column,
      header: 'Next attempt',
      cell: ({ next_attempt_at, waiting_for }) => (
        <span title={waiting_for ? `waiting for: ${waiting_for}` : undefined}>
          <Time at={next_attempt_at} />
        </span>
      ),
    };
  }
  if (status === 'IN_FLIGHT') {
    return {
      ...column,
      header: 'Lease ends',
      cell: ({ lease_expires_at }) => <Time at={lease_expires_at} />,
    };
  }
  return {
    ...column,
    header: status === 'DEAD' ? 'Dead at' : 'Completed',
    cell: ({ dead_at, completed_at }) => <Time at={dead_at ?? completed_at} />,
  };
}
