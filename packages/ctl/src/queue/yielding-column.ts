import type { Cell, Column, Sheet } from '../render/table.js';
import { cut, printable, widthOf } from '../render/text.js';

const gap = 2;
const narrowest = 8;

/** Cuts the texts of one column so that the others fit whole: a cut id is useless. */
export function yieldingColumn(
  title: string,
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  sheet: Sheet,
): Cell[][] {
  const at = columns.findIndex((column) => column.title === title);
  const taken = columns.map((column, place) =>
    place === at ? 0 : Math.max(widthOf(column.title), ...rows.map((row) => cellWidth(row[place]))),
  );
  const others = taken.reduce((sum, width) => sum + width, gap * (columns.length - 1));
  const room = Math.max(narrowest, sheet.columns - others);
  return rows.map((row) => row.map((cell, place) => (place === at ? cutCell(cell, room) : cell)));
}

function cellWidth(cell: Cell | undefined): number {
  return cell === undefined ? 0 : widthOf(textOf(cell));
}

function cutCell(cell: Cell, room: number): Cell {
  if (typeof cell === 'number' || !Number.isFinite(room)) return cell;
  const text = cut(textOf(cell), room);
  return typeof cell === 'object' ? { ...cell, text } : text;
}

function textOf(cell: Cell): string {
  return printable(typeof cell === 'object' ? cell.text : String(cell));
}
