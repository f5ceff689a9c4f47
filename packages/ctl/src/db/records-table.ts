import type { StoredRecord } from '@millrace/db';
import type { Outlet } from '../base/terminal.js';
import { renderTable, renderFacts, type Cell } from '../render/table.js';
import { printable } from '../render/text.js';

type Shown = StoredRecord<Record<string, unknown>>;

const narrowestColumn = 10;
const gap = 2;

/** Table of records that fits the terminal: names, then as many fields as there is room for. */
export function recordsTable(records: readonly Shown[], out: Outlet): string {
  const names = nameColumns(records);
  const fields = fieldsOf(records);
  const shown = fields.slice(0, roomFor(names, records, out.columns));
  const columns = [...names.map(([title]) => ({ title })), ...shown.map((title) => ({ title }))];
  const rows = records.map((record) => [
    ...names.map(([, read]) => read(record)),
    ...shown.map((field) => cellOf(record.data[field])),
  ]);
  const table = renderTable(columns, rows, out);
  const hidden = fields.slice(shown.length);
  if (hidden.length === 0) return table;
  const more = hidden.length === 1 ? 'one more field' : `${hidden.length} more fields`;
  return `${table}${more}: ${hidden.join(', ')} (choose with --fields, or see all with --json)\n`;
}

type NameColumn = readonly [title: string, read: (record: Shown) => Cell];

const keyColumn: NameColumn = ['KEY', ({ key }) => key];
const idColumn: NameColumn = ['ID', ({ id }) => id];
const scoreColumn: NameColumn = ['SCORE', ({ score = 0 }) => Number(score.toFixed(4))];
const revColumn: NameColumn = ['REV', ({ rev }) => rev];

/** Shows the key; the id only if there is none. */
function nameColumns(records: readonly Shown[]): NameColumn[] {
  const keyed = records.filter(({ key }) => key !== '').length;
  const isRanked = records.some(({ score }) => score !== undefined);
  return [
    ...(keyed < records.length || keyed === 0 ? [idColumn] : []),
    ...(keyed > 0 ? [keyColumn] : []),
    revColumn,
    ...(isRanked ? [scoreColumn] : []),
  ];
}

/** All top-level fields of the records, in order of appearance. */
export function fieldsOf(records: readonly { data: object }[]): string[] {
  return [...new Set(records.flatMap(({ data }) => Object.keys(data)))];
}

function roomFor(names: readonly NameColumn[], records: readonly Shown[], columns: number): number {
  if (!Number.isFinite(columns)) return Infinity;
  const taken = names.reduce((sum, [title, read]) => {
    const widths = records.map((record) => String(read(record)).length);
    return sum + Math.min(Math.max(title.length, ...widths), 26) + gap;
  }, 0);
  return Math.max(1, Math.floor((columns - taken + gap) / (narrowestColumn + gap)));
}

export function cellOf(value: unknown): Cell {
  if (value === undefined || value === null) return '';
  if (typeof value === 'string' || typeof value === 'number') return value;
  return JSON.stringify(value);
}

/** One record: its system fields, then its document as indented JSON. */
export function recordSheet(record: StoredRecord<object>, out: Outlet): string {
  const facts: [string, string][] = [['id', record.id]];
  if (record.key !== '') facts.push(['key', record.key]);
  facts.push(['rev', String(record.rev)]);
  facts.push(['created', record.createdAt.toISOString()]);
  if (record.rev > 1) facts.push(['updated', record.updatedAt.toISOString()]);
  if (record.expiresAt) facts.push(['expires', record.expiresAt.toISOString()]);
  const table = renderFacts(facts, out);
  const lines = JSON.stringify(record.data, null, 2).split('\n').map(printable);
  return `${table}${lines.join('\n')}\n`;
}
