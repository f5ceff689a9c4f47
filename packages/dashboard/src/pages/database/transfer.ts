import {
  cellsOf,
  columnsOf,
  CsvError,
  csvLine,
  CsvParser,
  headerLine,
  rowReader,
  type CsvRecord,
} from '@millrace/contract/lists/csv';
import { find, insert } from './api.js';
import type { FindBody } from './query.js';

/** More belongs on the command line, which streams. */
export const maxExported = 100_000;
const pageSize = 1_000;

/** Reads all records of a query as JSON lines, in the form of `ctl db export`. */
export async function exportLines(
  collection: string,
  body: FindBody,
  onProgress: (count: number) => void,
): Promise<{ lines: string[]; isComplete: boolean }> {
  const lines: string[] = [];
  let cursor = '';
  do {
    const page = await find(collection, {
      ...body,
      limit: pageSize,
      ...(cursor !== '' && { cursor }),
    });
    for (const record of page.records) lines.push(`${JSON.stringify(record)}\n`);
    onProgress(lines.length);
    cursor = page.next_cursor;
  } while (cursor !== '' && lines.length < maxExported);
  return { lines, isComplete: cursor === '' };
}

export interface ImportItem {
  line: number;
  key: string;
  data: object;
}

export interface ImportFailure {
  line: number;
  message: string;
}

const recordMembers = new Set([
  'collection',
  'id',
  'key',
  'rev',
  'seq',
  'created_at',
  'updated_at',
  'expires_at',
  'data',
]);

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Parses JSON lines, one JSON array, or CSV: records of an export, or documents. */
export function parseImport(text: string): { items: ImportItem[]; failures: ImportFailure[] } {
  if (/^\s*[^\s{[]/.test(text)) return parseCsv(text);
  const items: ImportItem[] = [];
  const failures: ImportFailure[] = [];
  const add = (value: unknown, line: number) => {
    if (!isObject(value)) {
      failures.push({ line, message: 'must be a JSON object' });
    } else {
      items.push({ line, ...itemOf(value) });
    }
  };
  const array = text.trimStart().startsWith('[') ? tryParse(text) : undefined;
  if (array && Array.isArray(array.value)) {
    for (const [index, value] of array.value.entries()) add(value, index + 1);
    return { items, failures };
  }
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    const parsed = tryParse(line);
    if (parsed) add(parsed.value, index + 1);
    else failures.push({ line: index + 1, message: 'is not valid JSON' });
  }
  return { items, failures };
}

function parseCsv(text: string): { items: ImportItem[]; failures: ImportFailure[] } {
  const items: ImportItem[] = [];
  const failures: ImportFailure[] = [];
  const parser = new CsvParser();
  let read: ReturnType<typeof rowReader> | undefined;
  let line = 1;
  try {
    for (const row of [...parser.push(text), ...parser.end()]) {
      ({ line } = row);
      if (!read) {
        read = rowReader(row.cells);
        continue;
      }
      try {
        const { data, key = '' } = read(row);
        items.push({ line, key, data });
      } catch (error) {
        failures.push({ line, message: (error as Error).message });
      }
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    failures.push({ line, message: `The file ${error.message}` });
  }
  return { items, failures };
}

/** Lines of an export as CSV. */
export function csvLines(lines: readonly string[]): string[] {
  const records = lines.map((line) => JSON.parse(line) as CsvRecord);
  const names = new Set(records.flatMap((record) => [...cellsOf(record).keys()]));
  const { header, mixed } = columnsOf(names);
  return [headerLine(header), ...records.map((each) => csvLine(header, cellsOf(each, mixed)))];
}

function itemOf(value: Record<string, unknown>): { key: string; data: object } {
  const { data, key } = value;
  const isRecord = isObject(data) && Object.keys(value).every((name) => recordMembers.has(name));
  if (!isRecord) return { key: '', data: value };
  return { key: typeof key === 'string' ? key : '', data };
}

function tryParse(text: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

const concurrency = 8;

/** Inserts the items, several at a time; a failed one does not stop the others. */
export async function importItems(
  collection: string,
  items: readonly ImportItem[],
  onProgress: (inserted: number) => void,
): Promise<{ inserted: number; failures: ImportFailure[] }> {
  const failures: ImportFailure[] = [];
  let inserted = 0;
  let next = 0;
  const work = async () => {
    for (let item = items[next++]; item; item = items[next++]) {
      try {
        await insert(collection, item.key, item.data);
        onProgress(++inserted);
      } catch (error) {
        failures.push({ line: item.line, message: (error as Error).message });
      }
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  return { inserted, failures: failures.toSorted((a, b) => a.line - b.line) };
}

/** Offers lines as a file. */
export function download(name: string, lines: readonly string[]): void {
  const url = URL.createObjectURL(new Blob(lines as string[], { type: 'application/x-ndjson' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
