import type { Column, Facts, List, Shown, Value } from '@millrace/contract/lists';
import { humanAge, humanCount, humanDuration } from '@millrace/kit/units';
import { asTyped } from './command-name.js';
import { renderFacts, renderTable, timeText, type Cell, type Sheet } from '../render/table.js';
import { cut, printable, widthOf } from '../render/text.js';

/** What a declared command shows, as text. */
export function shownText(shown: Shown, now: number, sheet: Sheet): string {
  if (typeof shown === 'string') return `${printable(shown)}\n`;
  if ('facts' in shown) return factsText(shown.facts, now, sheet);
  const text = listText(shown.list as List<unknown>, shown.rows, now, sheet);
  return shown.more ? `${text}${shown.more}\n` : text;
}

/** A declared list as a table. */
export function listText<Row>(
  list: List<Row>,
  rows: readonly Row[],
  now: number,
  sheet: Sheet,
): string {
  if (rows.length === 0) return asTyped(`${list.empty}\n`);
  const shown = list.columns.filter(({ minWidth = 0 }) => sheet.columns >= minWidth);
  const columns = shown.map(({ title, wraps = false }) => ({ title: title.toUpperCase(), wraps }));
  const cells = shown.map((column) => cellsOf(column, rows, now, sheet));
  const table = rows.map((_, row) => cells.map((column) => column[row]!));
  const yielding = shown.findLastIndex(({ yields }) => yields);
  const fitting = yielding < 0 ? table : yieldingColumn(yielding, columns, table, sheet);
  const footer = list.footer?.(rows) ?? '';
  return renderTable(columns, fitting, sheet) + (footer === '' ? '' : asTyped(`${footer}\n`));
}

function cellsOf<Row>(
  { value }: Column<Row>,
  rows: readonly Row[],
  now: number,
  sheet: Sheet,
): Cell[] {
  const values = rows.map(value);
  const ids = values.flatMap((each) => (typeof each === 'object' && 'id' in each ? each.id : []));
  const short = ids.length === 0 ? undefined : tellingIds(ids, sheet);
  return values.map((each) =>
    short && typeof each === 'object' && 'id' in each
      ? short.get(each.id)!
      : cellOf(each, now, sheet),
  );
}

/** Facts, one in a line. */
export function factsText(facts: Facts, now: number, sheet: Sheet): string {
  const rows = facts.flatMap(([name, value]): Cell[][] =>
    value === null ? [] : [[name, cellOf(value, now, sheet)]],
  );
  return renderFacts(rows, sheet);
}

/** One value as a cell of a table. */
export function cellOf(value: Value, now: number, sheet: Sheet): Cell {
  if (typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map((each) => plainText(each, now, sheet)).join('');
  const shown = value as Exclude<typeof value, readonly Value[]>;
  if ('text' in shown) return shown;
  if ('id' in shown) return shown.id;
  if ('age' in shown) return humanAge(Date.parse(shown.age), now);
  if ('amount' in shown) {
    const text = humanCount(shown.amount);
    return shown.tone === undefined ? text : { text, tone: shown.tone };
  }
  if ('ms' in shown) {
    return shown.ms === 0 && shown.none !== undefined ? shown.none : humanDuration(shown.ms);
  }
  if ('since' in shown) {
    const ms = Math.max(0, now - Date.parse(shown.since));
    const lasted = shown.inSeconds ? Math.round(ms / 1000) * 1000 : ms;
    return `${humanDuration(lasted)}${shown.suffix ?? ''}`;
  }
  if ('due' in shown) return shown.due === null ? '-' : dueText(shown.due, now, sheet);
  const { time, none = '-', exactFrom = Infinity } = shown;
  if (time === null) return none;
  if (sheet.columns >= exactFrom && !sheet.utc) return time.slice(0, 19).replace('T', ' ');
  return timeText(Date.parse(time), now, sheet);
}

function plainText(value: Value, now: number, sheet: Sheet): string {
  const cell = cellOf(value, now, sheet);
  return typeof cell === 'object' ? cell.text : String(cell);
}

function dueText(due: string, now: number, sheet: Sheet): string {
  const at = Date.parse(due);
  if (sheet.utc) return timeText(at, now, sheet);
  return at <= now ? 'now' : `in ${humanDuration(at - now)}`;
}

const minIdLength = 8;

/** The shortest unambiguous id prefixes for a terminal; whole ids for a pipe. */
export function tellingIds(
  ids: readonly string[],
  { columns }: { columns: number },
): Map<string, string> {
  if (!Number.isFinite(columns)) return new Map(ids.map((id) => [id, id]));
  const sorted = ids.toSorted((a, b) => (a < b ? -1 : 1));
  return new Map(
    sorted.map((id, at) => {
      const neighbours = [sorted[at - 1] ?? '', sorted[at + 1] ?? ''];
      const shared = neighbours.map((other) => sharedLength(id, other));
      return [id, id.slice(0, Math.max(minIdLength, ...shared.map((length) => length + 1)))];
    }),
  );
}

function sharedLength(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at++;
  return at;
}

const gap = 2;
const narrowest = 8;

/** Cuts the texts of one column so that the others fit whole: a cut id is useless. */
export function yieldingColumn(
  at: number,
  columns: readonly { readonly title: string }[],
  rows: readonly (readonly Cell[])[],
  sheet: Sheet,
): Cell[][] {
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
