import { count } from '../../parts/format.js';
import { Time } from '../../parts/time.js';
import type { Column } from '../../parts/virtual-table.js';
import type { DeadRow } from '../../queue/api.js';
import { attemptsColumn, idColumn, selectColumn } from '../../queue/task-columns.js';

interface ColumnParts {
  selected: ReadonlySet<string>;
  toggle: (id: string) => void;
  onOpen: (id: string) => void;
  isNarrow: boolean;
}

export function columnsFor({ selected, toggle, onOpen, isNarrow }: ColumnParts): Column<DeadRow>[] {
  return [
    selectColumn({ selected, onToggle: toggle, className: 'dead-select' }),
    {
      id: 'handler',
      header: 'Handler',
      width: 'minmax(0, 1fr)',
      cell: (row) => (
        <>
          <button type="button" className="row-link dead-open" onClick={() => onOpen(row.id)}>
            {row.handler_ref}
          </button>
          {isNarrow && <Failure row={row} />}
        </>
      ),
    },
    {
      id: 'error',
      header: 'Error',
      width: 'minmax(0, 3.5fr)',
      wideOnly: true,
      cell: (row) => <Failure row={row} />,
    },
    attemptsColumn,
    {
      id: 'redrives',
      header: 'Redrives',
      width: '5rem',
      numeric: true,
      wideOnly: true,
      cell: ({ redrive_count }) => count(redrive_count),
    },
    idColumn,
    {
      id: 'died',
      header: 'Dead at',
      width: '6rem',
      cell: ({ dead_at }) => <Time at={dead_at} />,
    },
  ];
}

function Failure({ row: { errorType, httpStatus, message } }: { row: DeadRow }) {
  return (
    <div title={message}>
      <div className="ellipsis">
        {httpStatus === null ? errorType : `${errorType} ${httpStatus}`}
      </div>
      <div className="ellipsis muted">{message}</div>
    </div>
  );
}
