import { Id } from '../../parts/id.js';
import { Time } from '../../parts/time.js';
import type { Column } from '../../parts/virtual-table.js';
import type { DbRecord } from './api.js';
import { EditableCell } from './editable-cell.js';
import { cellText } from './fields.js';

export interface Sort {
  field: string;
  isDescending: boolean;
}

interface ColumnParts {
  fields: readonly string[];
  /** Those that are shown, or some of them: columns are as wide as their values need. */
  records: readonly DbRecord[];
  sort: Sort | undefined;
  savingId: string | undefined;
  isNarrow: boolean;
  onOpen: (id: string) => void;
  onSort: (sort: Sort) => void;
  onEdit: (edit: { record: DbRecord; field: string; value: unknown }) => void;
}

/** One column per field, sorted by a click on its header. */
export function columnsFor(parts: ColumnParts): Column<DbRecord>[] {
  const { fields, records, savingId, isNarrow, onOpen, onEdit } = parts;
  const sample = records.slice(0, sampleSize);
  const hasKeys = sample.some(({ key }) => key);
  return [
    {
      id: 'key',
      header: 'Key or id',
      width: isNarrow ? 'minmax(0, 1fr)' : hasKeys ? 'minmax(8rem, 15rem)' : '9.5rem',
      resizable: true,
      ...sorting(parts, '$id'),
      cell: (record) => (
        <>
          <button type="button" className="row-link db-open" onClick={() => onOpen(record.id)}>
            {record.key || <Id value={record.id} />}
          </button>
          {isNarrow && <div className="ellipsis mono muted">{dataText(record)}</div>}
        </>
      ),
    },
    ...fields.map((field): Column<DbRecord> => ({
      id: `data.${field}`,
      header: field,
      ...shapeOf(sample, field),
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
      width: '3rem',
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

const sampleSize = 50;

/** A share of the width by the longest of the usual values; numbers are right-aligned. */
function shapeOf(
  sample: readonly DbRecord[],
  field: string,
): Pick<Column<DbRecord>, 'width' | 'numeric'> {
  const values = sample
    .map(({ data }) => data[field])
    .filter((value) => value !== null && value !== undefined);
  const lengths = values.map((value) => cellText(value).length).toSorted((a, b) => a - b);
  const usual = lengths[Math.floor(lengths.length * 0.9)] ?? 0;
  const share = Math.min(Math.max(usual, field.length, 4), 40);
  const numeric = values.length > 0 && values.every((value) => typeof value === 'number');
  return { width: `minmax(6rem, ${share}fr)`, numeric };
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
