import type { DbRecord } from './api.js';
import { readValue } from './query.js';

type Records = readonly Pick<DbRecord, 'data'>[];

const sampledRecords = 200;
const defaultCount = 6;

/** Top-level field names of the first records: the most frequent first. */
export function fieldNames(records: Records): string[] {
  const counts = new Map<string, number>();
  for (const { data } of records.slice(0, sampledRecords)) {
    for (const name of Object.keys(data)) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  // The sort is stable, so equally frequent fields stay in the order of the records.
  return [...counts].toSorted((a, b) => b[1] - a[1]).map(([name]) => name);
}

/** The columns to show: those chosen, else the most frequent fields. */
export function shownFields(chosen: string, names: readonly string[]): readonly string[] {
  return chosen === '' ? names.slice(0, defaultCount) : chosen.split(',');
}

// More than a cell shows on the widest page.
const maxChars = 300;

/** A value in a cell: a text as it is, anything else as JSON. */
export function cellText(value: unknown): string {
  if (value === undefined) return '';
  return (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, maxChars);
}

/** Whether the whole value fits into an input. */
export const isEditable = (value: unknown): boolean =>
  cellText(value).length < maxChars && !(typeof value === 'string' && value.includes('\n'));

/**
 * Parses what was typed into a cell. A text stays a text, so that "18" does not turn into a number;
 * anything else must stay JSON.
 */
export function editedValue(before: unknown, text: string): { value: unknown } | { error: string } {
  if (typeof before === 'string') return { value: text };
  if (before === undefined || before === null) return { value: readValue(text) };
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return { error: `Enter JSON, such as ${JSON.stringify(before).slice(0, 40)}.` };
  }
}
