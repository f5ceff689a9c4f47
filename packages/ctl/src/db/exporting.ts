import type { Flags } from '../base/tools.js';
import { humanDuration } from '@millrace/kit/units';
import { filterOf, listOf } from '../base/arguments.js';
import type { ConnectedTools, ConnectionFlags } from './connection.js';
import { requireCollection } from './catalog.js';
import { Progress } from './progress.js';
import { counted } from '@millrace/contract/lists';
import { cellsOf, columnsOf, CsvError, csvLine, headerLine } from '@millrace/contract/lists/csv';
import { Refusal } from '@millrace/kit/errors';
import { formatOfName, type FileFormat } from './import-items.js';
import type { Found } from './reads.js';
import { recordJson } from './shapes.js';

type ExportFlags = ConnectionFlags &
  Flags<'filter fields out', 'documents'> & { format?: FileFormat };

interface Form {
  readonly start: string;
  line(record: Found, isFirst: boolean): string;
  readonly end: string;
}

function refusing<T>(code: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (error instanceof CsvError) throw new Refusal(code, `${error.message}.`);
    throw error;
  }
}

/** How records are written. A CSV file is read once more before, for its header. */
async function formOf(
  { format, documents }: { format: FileFormat; documents: boolean },
  stream: () => AsyncIterable<Found>,
): Promise<Form> {
  const shown = (record: Found) => (documents ? record.data : recordJson(record));
  if (format === 'ndjson') {
    return { start: '', line: (record) => `${JSON.stringify(shown(record))}\n`, end: '' };
  }
  if (format === 'json') {
    const line = (record: Found, isFirst: boolean) =>
      `${isFirst ? '[\n' : ',\n'}${JSON.stringify(shown(record))}`;
    return { start: '[', line, end: '\n]\n' };
  }
  const cells = (record: Found, mixed?: ReadonlySet<string>) =>
    refusing('NOT_CSV', () =>
      cellsOf(documents ? { data: record.data } : recordJson(record), mixed),
    );
  const names = new Set<string>();
  let hasEmpty = false;
  for await (const record of stream()) {
    const found = cells(record);
    hasEmpty ||= found.size === 0;
    for (const name of found.keys()) names.add(name);
  }
  const { header, mixed } = columnsOf(names);
  // A blank line would not be read as a record.
  if (hasEmpty && header.length < 2) header.push('$id', '$key');
  const start = header.length > 0 ? headerLine(header) : '';
  const line = (record: Found, isFirst: boolean) =>
    (isFirst ? start : '') + refusing('CHANGED', () => csvLine(header, cells(record, mixed)));
  return { start: '', line, end: '' };
}

export async function exportRecords(
  collection: string,
  conditions: readonly string[],
  flags: ExportFlags,
  { connected, terminal, lifecycle }: ConnectedTools,
): Promise<void> {
  const { out, err } = terminal;
  const query = { filter: filterOf(conditions, flags.filter), fields: listOf(flags.fields) };
  const isCsv = terminal.format === 'csv';
  const options = {
    documents: flags.documents ?? false,
    file: flags.out,
    format: flags.format ?? (isCsv ? ('csv' as const) : formatOfName(flags.out)),
  };
  const database = await connected();
  await requireCollection(database, collection);
  const records = database.collection(collection);
  const progress = new Progress(terminal, 'Exported');
  const of = err.isScreen ? await records.count(query.filter) : 0;
  const written = { records: 0, bytes: 0 };
  async function* lines(): AsyncGenerator<string, void, void> {
    const form = await formOf(options, () => records.stream(query));
    for await (const record of records.stream(query)) {
      const line = form.line(record, written.records === 0);
      written.records++;
      written.bytes += Buffer.byteLength(line);
      progress.show({ ...written, of });
      yield line;
    }
    if (written.records === 0) yield form.start;
    yield form.end;
  }
  try {
    if (options.file === undefined) {
      for await (const line of lines()) {
        out.write(line);
        await out.drained();
      }
      return;
    }
    const { writeWhole } = await import('./atomic-file.js');
    await writeWhole(options.file, lines(), { signal: lifecycle.interrupted });
  } finally {
    progress.end();
  }
  const took = humanDuration(progress.elapsedMs);
  terminal.show(
    { file: options.file, ...written },
    `Exported ${counted(written.records, 'record')} to ${options.file} in ${took}.\n`,
  );
}
