import type { List, Value } from '@millrace/contract/lists';
import type { ReactNode } from 'react';
import { count, duration } from './format.js';
import { Status, type Tone } from './status.js';
import { Time } from './time.js';

export interface DataColumn<Row> {
  header: string;
  /** Instead of the header beside a value, where each row is a card. */
  label?: string;
  /** A card shows the value without a label. */
  isUnlabelled?: boolean;
  /** Right-aligned. */
  numeric?: boolean;
  /** The header is for screen readers only, and the value has no label. */
  isBare?: boolean;
  className?: string | ((row: Row) => string | undefined);
  cell: (row: Row) => ReactNode;
}

interface DataTableProps<Row> {
  /** The accessible name of the table. */
  label: string;
  columns: readonly DataColumn<Row>[];
  rows: readonly Row[];
  rowKey: (row: Row) => string;
  /** On a narrow page each row becomes a card. */
  isCards?: boolean;
  className?: string;
}

/** A table that shows all of its rows; the first column names them. */
export function DataTable<Row>(props: DataTableProps<Row>) {
  const { label, columns, rows, rowKey, isCards = true, className } = props;
  const classes = ['table', isCards && 'cards', className].filter(Boolean).join(' ');
  const classOf = ({ numeric, className: own }: DataColumn<Row>, row: Row) => {
    const named = typeof own === 'function' ? own(row) : own;
    return [numeric && 'numeric', named].filter(Boolean).join(' ') || undefined;
  };
  return (
    <div className="scroll-x" tabIndex={0} role="group" aria-label={label}>
      <table role="table" className={classes}>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map(({ header, numeric, isBare }) => (
              <th
                key={header}
                role="columnheader"
                scope="col"
                className={numeric ? 'numeric' : undefined}
              >
                {isBare ? <span className="visually-hidden">{header}</span> : header}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row) => (
            <tr key={rowKey(row)} role="row">
              {columns.map((column, at) =>
                at === 0 ? (
                  <th
                    key={column.header}
                    role="rowheader"
                    scope="row"
                    className={classOf(column, row)}
                  >
                    {column.cell(row)}
                  </th>
                ) : (
                  <td
                    key={column.header}
                    role="cell"
                    data-label={labelOf(column)}
                    className={classOf(column, row)}
                  >
                    {column.cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function labelOf({ header, label = header, isBare, isUnlabelled }: DataColumn<never>) {
  return isBare || isUnlabelled ? undefined : label;
}

/** Columns of a declared list by their titles, each with what this page shows differently. */
export function listColumns<Row>(
  { columns }: List<Row>,
  wanted: Readonly<Record<string, Partial<DataColumn<Row>>>>,
): DataColumn<Row>[] {
  return Object.entries(wanted).map(([title, own]) => {
    const column = columns.find((each) => each.title === title);
    const value = column?.value ?? (() => '');
    return { header: title, cell: (row) => shownValue(value(row)), ...own };
  });
}

const tones: Readonly<Record<string, Tone>> = { ok: 'good', warn: 'warn', bad: 'bad', dim: 'off' };

/** A value of a declared list. */
function shownValue(value: Value): ReactNode {
  if (typeof value === 'number') return count(value);
  if (typeof value === 'string') return value;
  if ('text' in value) return <Status tone={tones[value.tone] ?? 'busy'}>{value.text}</Status>;
  if ('time' in value) return <Time at={value.time} />;
  if ('due' in value) return <Time at={value.due} />;
  if ('since' in value) return <Time at={value.since} />;
  if ('age' in value) return <Time at={value.age} />;
  if ('ms' in value) return duration(value.ms);
  if ('amount' in value) return count(value.amount);
  if ('id' in value) return value.id;
  return value.map(shownValue);
}
