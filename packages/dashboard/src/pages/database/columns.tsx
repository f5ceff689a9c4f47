import { Id } from '../../parts/id.js';
import { Time } from '../../parts/time.js';
import { column, type Column } from '../../parts/virtual-table.js';
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
  const isSearch = sample.some(({ score }) => score !== undefined);
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
    ...(isSearch ? hitColumns : []),
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
    column('Rev', '3rem', ({ rev }) => rev, {
      numeric: true,
      wideOnly: true,
      ...sorting(parts, '$rev'),
    }),
    column('Updated', '6rem', (row) => <Time at={row.updated_at} />, sorting(parts, '$updated_at')),
  ];
}

/** How well a record matches a search, and where. */
const hitColumns: Column<DbRecord>[] = [
  column('Score', '4.5rem', ({ score }) => score?.toFixed(2), { numeric: true }),
  column(
    'Hits',
    'minmax(10rem, 40fr)',
    ({ highlights = {} }) => (
      <span className="ellipsis">
        {(Object.values(highlights) as string[][]).flat().map(marked)}
      </span>
    ),
    { wideOnly: true, resizable: true, id: 'hits' },
  ),
];

/** A fragment with its hits in <mark>; everything else in it is text. */
function marked(fragment: string, key: number) {
  const parts = fragment.split(/<mark>(.*?)<\/mark>/s);
  return (
    <span key={key}>
      {parts.map((part, i) => (i % 2 === 1 ? <mark key={i}>{part}</mark> : part))}{' '}
    </span>
  );
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
  // The header and the mark of its order fit in any case.
  const least = Math.max(4, 0.6 * Math.min(field.length + 4, 12));
  // In `ch` the header, whose font is smaller, would have other columns than the rows.
  return { width: `minmax(${least}rem, ${share}fr)`, numeric };
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
