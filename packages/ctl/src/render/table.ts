import type { Paint, Tone } from './paint.js';
import { cut, printable, widthOf, wrap } from './text.js';
import { formatTimestamp, humanAge } from '@millrace/kit/units';

export interface Column {
  /** Column title; a table whose titles are all empty has no heading. */
  readonly title: string;
  /** A text that does not fit is wrapped instead of cut. */
  readonly wraps?: boolean;
}

/** A column whose texts are wrapped. */
export function wrapped(title: string): Column {
  return { title, wraps: true };
}

export type Cell = string | number | { readonly text: string; readonly tone: Tone };

export interface Sheet {
  /** Terminal width; Infinity for a pipe. */
  readonly columns: number;
  readonly paint: Paint;
  /** `--utc`: show times as RFC 3339 times instead of ages. */
  readonly utc?: boolean;
}

const GAP = '  ';
const NARROWEST = 4;

/** Lays out rows in columns that fit the terminal. Number columns are right-aligned. */
export function renderTable(
  titles: readonly (string | Column)[],
  rows: readonly (readonly Cell[])[],
  sheet: Sheet,
): string {
  const columns = titles.map((each): Column => (typeof each === 'string' ? { title: each } : each));
  const numeric = columns.map((_, at) => rows.length > 0 && rows.every((row) => isNumber(row[at])));
  const texts = rows.map((row) => columns.map((_, at) => textOf(row[at])));
  const natural = columns.map(({ title }, at) =>
    Math.max(widthOf(title), ...texts.map((row) => widthOf(row[at] ?? ''))),
  );
  const widths = fit(natural, numeric, sheet.columns);

  const layOut = (cells: readonly string[], tones: readonly (Tone | undefined)[]): string[] => {
    const blocks = cells.map((text, at) => {
      const width = widths[at] ?? 0;
      return columns[at]?.wraps ? wrap(text, width) : [cut(text, width)];
    });
    const height = Math.max(...blocks.map((block) => block.length));
    return Array.from({ length: height }, (_, line) =>
      blocks
        .map((block, at) => {
          const text = block[line] ?? '';
          const space = ' '.repeat(Math.max(0, (widths[at] ?? 0) - widthOf(text)));
          const tone = tones[at];
          const shown = tone === undefined || text === '' ? text : sheet.paint(tone, text);
          return numeric[at] === true ? space + shown : shown + space;
        })
        .join(GAP)
        .trimEnd(),
    );
  };

  const heading = columns.some(({ title }) => title !== '')
    ? layOut(
        columns.map(({ title }) => title),
        columns.map(() => 'strong' as const),
      )
    : [];
  const body = rows.flatMap((row, at) =>
    layOut(
      texts[at] ?? [],
      columns.map((_, c) => toneOf(row[c])),
    ),
  );
  return [...heading, ...body].map((line) => `${line}\n`).join('');
}

/** Names and values in two columns without a heading; long values are wrapped. */
export function renderFacts(rows: readonly (readonly Cell[])[], sheet: Sheet): string {
  return renderTable(['', wrapped('')], rows, sheet);
}

/** Narrows only the widest columns until the table fits. Numbers are never cut. */
function fit(natural: readonly number[], numeric: readonly boolean[], available: number): number[] {
  const gaps = GAP.length * (natural.length - 1);
  const widths = [...natural];
  let excess = widths.reduce((sum, width) => sum + width, gaps) - available;
  while (excess > 0 && Number.isFinite(excess)) {
    const candidates = widths.map((width, at) => (numeric[at] === true ? 0 : width));
    const widest = Math.max(...candidates);
    if (widest <= NARROWEST) break;
    widths[candidates.indexOf(widest)] = widest - 1;
    excess -= 1;
  }
  return widths;
}

function isNumber(cell: Cell | undefined): boolean {
  return typeof cell === 'number';
}

function textOf(cell: Cell | undefined): string {
  if (cell === undefined) return '';
  return printable(typeof cell === 'object' ? cell.text : String(cell));
}

function toneOf(cell: Cell | undefined): Tone | undefined {
  return typeof cell === 'object' ? cell.tone : undefined;
}

/** A time in a table: `2m ago`, or with `--utc` as an RFC 3339 time. `-` if it is unknown. */
export function timeText(at: number, now: number, sheet: Pick<Sheet, 'utc'>): string {
  if (sheet.utc && Number.isFinite(at)) return formatTimestamp(at);
  return humanAge(at, now);
}
