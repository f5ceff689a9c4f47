import { Button } from '../../parts/controls.js';
import { count } from '../../parts/format.js';
import { Time } from '../../parts/time.js';
import { column, type Column } from '../../parts/virtual-table.js';
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
    column('Handler', 'minmax(0, 1fr)', (row) => (
      <>
        <Button className="row-link dead-open" onClick={() => onOpen(row.id)}>
          {row.handler_ref}
        </Button>
        {isNarrow && <Failure row={row} />}
      </>
    )),
    column('Error', 'minmax(0, 3.5fr)', (row) => <Failure row={row} />, { wideOnly: true }),
    attemptsColumn,
    column('Redrives', '5rem', ({ redrive_count }) => count(redrive_count), {
      numeric: true,
      wideOnly: true,
    }),
    idColumn,
    column('Dead at', '6rem', ({ dead_at }) => <Time at={dead_at} />),
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
