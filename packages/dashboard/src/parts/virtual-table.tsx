import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useRef, type CSSProperties, type ReactNode } from 'react';
import type { ColumnWidths } from './column-widths.js';
import { ResizeHandle } from './resize-handle.js';
import { useIsNarrow } from './use-is-narrow.js';
import { useRowKeys } from './row-keys.js';
import { showRowTitle } from './row-title.js';
import { density } from '../style/theme.js';

export interface Column<Row> {
  id: string;
  header: string;
  /** Shown in place of the header, such as a checkbox for all rows. */
  headerControl?: ReactNode;
  /** A CSS grid track: `8rem`, `minmax(0, 2fr)`. */
  width: string;
  /** The track on a narrow page. */
  narrowWidth?: string;
  cell: (row: Row) => ReactNode;
  /** Right-aligned. */
  numeric?: boolean;
  /** Can be resized where the table allows it. */
  resizable?: boolean;
  /** Hidden on a narrow page. */
  wideOnly?: boolean;
  /** Makes the header a button that sorts. */
  onSort?: () => void;
  sorted?: 'ascending' | 'descending' | 'none';
}

interface VirtualTableProps<Row> {
  /** The accessible name of the table. */
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  rowKey: (row: Row) => string;
  rowHeight?: number;
  narrowRowHeight?: number;
  /** Called near the end of the rows, to fetch the next page. */
  onNearEnd?: (() => void) | undefined;
  selectedKey?: string | undefined;
  /** Lets a person resize the columns. */
  resize?: ColumnWidths;
}

/** A column named by its header. */
export const column = <Row,>(
  header: string,
  width: string,
  cell: (row: Row) => ReactNode,
  more: Partial<Column<Row>> = {},
): Column<Row> => ({ id: header, header, width, cell, ...more });

/** One line of text needs 28 pixels; taller rows have more lines. */
const compactHeight = (height: number): number => Math.max(28, height - 12);

const sortMarks = { ascending: '▲', descending: '▼', none: '' } as const;

/**
 * A table that renders only the visible rows. Rows have a fixed height. The keys j, k and Enter act
 * on the first link or button of a row.
 */
export function VirtualTable<Row>({
  label,
  columns,
  rows,
  rowKey,
  rowHeight = 40,
  narrowRowHeight = 64,
  onNearEnd,
  selectedKey,
  resize,
}: VirtualTableProps<Row>) {
  const isNarrow = useIsNarrow();
  const shown = isNarrow ? columns.filter(({ wideOnly }) => !wideOnly) : columns;
  const isCompact = density.use() === 'compact';
  const height = isNarrow ? narrowRowHeight : isCompact ? compactHeight(rowHeight) : rowHeight;
  const scroller = useRef<HTMLDivElement>(null);
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    overscan: 12,
    getItemKey: (index) => rowKey(rows[index]!),
  });
  useEffect(() => virtualizer.measure(), [virtualizer, height]);
  useRowKeys(scroller, rows.length, (index) => virtualizer.scrollToIndex(index));
  const items = virtualizer.getVirtualItems();
  const lastShown = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (rows.length > 0 && lastShown >= rows.length - 20) onNearEnd?.();
  }, [lastShown, rows.length, onNearEnd]);
  const grid: CSSProperties = {
    gridTemplateColumns: shown
      .map(({ id, width, narrowWidth = width }) => {
        if (isNarrow) return narrowWidth;
        const chosen = resize?.widths[id];
        // As a maximum, so that the columns never get wider than the table.
        return chosen === undefined ? width : `minmax(3rem, ${chosen}px)`;
      })
      .join(' '),
  };
  return (
    <div className="vtable" role="table" aria-label={label} aria-rowcount={rows.length + 1}>
      <div role="rowgroup" className="vtable-head">
        <div role="row" aria-rowindex={1} className="vtable-row" style={grid}>
          {shown.map(({ id, header, headerControl, numeric, onSort, sorted, resizable }) => (
            <div
              key={id}
              role="columnheader"
              aria-sort={onSort && sorted}
              className={numeric ? 'numeric' : undefined}
            >
              {onSort ? (
                <button type="button" className="vtable-sort" title={header} onClick={onSort}>
                  {header} <span aria-hidden="true">{sortMarks[sorted ?? 'none']}</span>
                </button>
              ) : (
                (headerControl ?? header)
              )}
              {resize && resizable && !isNarrow && (
                <ResizeHandle
                  column={header}
                  width={resize.widths[id]}
                  onWidth={(width) => resize.setWidth(id, width)}
                />
              )}
            </div>
          ))}
        </div>
      </div>
      <div
        ref={scroller}
        role="rowgroup"
        className="vtable-scroll"
        tabIndex={0}
        onMouseMove={showRowTitle}
      >
        <div role="presentation" style={{ height: virtualizer.getTotalSize() }}>
          {items.map((item) => {
            const row = rows[item.index]!;
            return (
              <div
                key={item.key}
                role="row"
                aria-rowindex={item.index + 2}
                data-index={item.index}
                className={item.key === selectedKey ? 'vtable-row vtable-selected' : 'vtable-row'}
                style={{ ...grid, height: item.size, transform: `translateY(${item.start}px)` }}
              >
                {shown.map(({ id, cell, numeric }) => (
                  <div key={id} role="cell" className={numeric ? 'numeric' : undefined}>
                    {cell(row)}
                  </div>
                ))}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
