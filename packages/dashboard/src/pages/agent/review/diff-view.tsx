import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useMemo, useRef } from 'react';
import { words } from '../../../parts/format.js';
import type { DiffFile } from './api.js';
import { Counts } from './file-tree.js';
import { diffRows, type DiffLayout, type DiffRow, type Side } from './rows.js';

interface DiffViewProps {
  files: readonly DiffFile[];
  layout: DiffLayout;
  /** The file to scroll to. */
  selected: string;
}

/** The lines of all files; only the visible ones are rendered. */
export function DiffView({ files, layout, selected }: DiffViewProps) {
  const rows = useMemo(() => diffRows(files, layout), [files, layout]);
  const scroller = useRef<HTMLDivElement>(null);
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => (rows[index]!.kind === 'file' ? 40 : 20),
    overscan: 30,
  });
  const start = rows.findIndex((row) => row.kind === 'file' && row.file.path === selected);
  useEffect(() => {
    if (start >= 0) virtualizer.scrollToIndex(start, { align: 'start' });
  }, [start, virtualizer]);
  return (
    <div
      ref={scroller}
      className={`diff diff-${layout}`}
      role="group"
      aria-label="Changes"
      tabIndex={0}
    >
      <div className="diff-rows" style={{ height: virtualizer.getTotalSize() }}>
        {virtualizer.getVirtualItems().map((item) => (
          <div
            key={item.key}
            ref={virtualizer.measureElement}
            data-index={item.index}
            className="diff-row"
            style={{ transform: `translateY(${item.start}px)` }}
          >
            <Row row={rows[item.index]!} layout={layout} />
          </div>
        ))}
      </div>
    </div>
  );
}

function Row({ row, layout }: { row: DiffRow; layout: DiffLayout }) {
  if (row.kind === 'file') {
    return (
      <h3 className="diff-file">
        <span>{row.file.path}</span>
        <span className="muted">{words(row.file.status)}</span>
        <Counts {...row.file} />
      </h3>
    );
  }
  if (row.kind !== 'line') return <div className={`diff-${row.kind}`}>{row.text}</div>;
  if (layout === 'split') {
    return (
      <div className="diff-pair">
        <Half side={row.old} tone={row.change === 'same' ? 'same' : 'deleted'} />
        <Half side={row.new} tone={row.change === 'same' ? 'same' : 'added'} />
      </div>
    );
  }
  return (
    <div className={`diff-line diff-${row.change}`}>
      <span className="diff-number">{row.old?.number}</span>
      <span className="diff-number">{row.new?.number}</span>
      <Mark change={row.change} />
      <span className="diff-text">{(row.new ?? row.old)!.text}</span>
    </div>
  );
}

const marks = { same: ' ', changed: ' ', added: '+', deleted: '-' } as const;

function Mark({ change }: { change: keyof typeof marks }) {
  return <span className="diff-mark">{marks[change]}</span>;
}

function Half({ side, tone }: { side: Side | undefined; tone: 'same' | 'added' | 'deleted' }) {
  if (!side) return <div className="diff-half diff-none" />;
  return (
    <div className={`diff-half diff-${tone}`}>
      <span className="diff-number">{side.number}</span>
      <Mark change={tone} />
      <span className="diff-text">{side.text}</span>
    </div>
  );
}
