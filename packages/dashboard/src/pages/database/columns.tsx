import { Time } from '../../parts/time.js';
import type { Column } from '../../parts/virtual-table.js';
import type { DbRecord } from './api.js';
import { EditableCell } from './editable-cell.js';

export interface Sort {
  field: string;
  isDescending: boolean;
}

interface ColumnParts {
  fields: readonly string[];
  sort: Sort | undefined;
  savingId: string | undefined;
  isNarrow: boolean;
  onOpen: (id: string) => void;
  onSort: (sort: Sort) => void;
  onEdit: (edit: { record: DbRecord; field: string; value: unknown }) => void;
}

/** One column per field, sorted by a click on its header. */
export function columnsFor(parts: ColumnParts): Column<DbRecord>[] {
  const { fields, savingId, isNarrow, onOpen, onEdit } = parts;
  return [
    {
      id: 'key',
      header: 'Key or id',
      width: isNarrow ? 'minmax(0, 1fr)' : 'minmax(12rem, 15rem)',
      resizable: true,
      ...sorting(parts, '$id'),
      cell: (record) => (
        <>
          <button type="button" className="row-link db-open" onClick={() => onOpen(record.id)}>
            {nameOf(record)}
          </button>
          {isNarrow && <div className="ellipsis mono muted">{dataText(record)}</div>}
        </>
      ),
    },
    ...fields.map((field): Column<DbRecord> => ({
      id: `data.${field}`,
      header: field,
      width: 'minmax(4rem, 1fr)',
      wideOnly: true,
      resizable: true,
      ...sorting(parts, field),
      cell: (record) => (
        <EditableCell
          name={field}
          value={record.data[field]}
          isSaving={savingId === record.id}
          onSave={(value) => onEdit({ record, field, value })}
        />
      ),
    })),
    {
      id: 'rev',
      header: 'Rev',
      width: '4rem',
      numeric: true,
      wideOnly: true,
      ...sorting(parts, '$rev'),
      cell: ({ rev }) => rev,
    },
    {
      id: 'updated',
      header: 'Updated',
      width: '6rem',
      ...sorting(parts, '$updated_at'),
      cell: ({ updated_at }) => <Time at={updated_at} />,
    },
  ];
}

function sorting({ sort, onSort }: ColumnParts, field: string): Partial<Column<DbRecord>> {
  const isSorted = sort?.field === field;
  const isDescending = isSorted && sort.isDescending;
  return {
    sorted: isSorted ? (isDescending ? 'descending' : 'ascending') : 'none',
    onSort: () => onSort({ field, isDescending: isSorted && !isDescending }),
  };
}

export const nameOf = ({ key, id }: Pick<DbRecord, 'key' | 'id'>): string => key || id;

// More than a row shows on the widest page.
const maxChars = 300;

function dataText({ data }: DbRecord): string {
  return JSON.stringify(data).slice(0, maxChars);
}
