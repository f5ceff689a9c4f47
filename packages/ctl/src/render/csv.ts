import { headerLine as lineOf } from '@millrace/contract/lists/csv';

type Fields = Readonly<Record<string, unknown>>;

/** Rows as CSV (RFC 4180), with a header of every field that some row has. */
export function csvOf(rows: readonly unknown[]): string {
  const items = rows.map((row) => (isFields(row) ? row : { value: row }));
  const fields = [...new Set(items.flatMap((item) => Object.keys(item)))];
  const lines = [fields, ...items.map((item) => fields.map((field) => item[field]))];
  return lines.map((cells) => lineOf(cells.map(textOf))).join('');
}

function isFields(row: unknown): row is Fields {
  return typeof row === 'object' && row !== null && !Array.isArray(row);
}

/** What is missing is an empty cell; lists and objects are JSON. */
function textOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
