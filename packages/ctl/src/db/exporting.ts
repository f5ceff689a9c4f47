import { humanDuration } from '@millrace/kit/units';
import type { Filter } from '@millrace/db';
import type { RemoteDatabase } from '@millrace/db/client';
import type { Tools } from '../base/tools.js';
import { requireCollection } from './catalog.js';
import { Progress } from './progress.js';
import { counted } from '@millrace/contract/lists';
import { recordJson } from './shapes.js';

export interface ExportOptions {
  collection: string;
  filter: Filter | undefined;
  fields: readonly string[];
  documents: boolean;
  file: string | undefined;
}

export async function exportRecords(
  database: RemoteDatabase,
  options: ExportOptions,
  { terminal, lifecycle }: Pick<Tools, 'terminal' | 'lifecycle'>,
): Promise<void> {
  const { out, err, json } = terminal;
  const { filter, fields } = options;
  await requireCollection(database, options.collection);
  const records = database.collection(options.collection);
  const progress = new Progress(terminal, 'Exported');
  const of = err.isScreen ? await records.count(filter) : 0;
  const written = { records: 0, bytes: 0 };
  async function* lines(): AsyncGenerator<string, void, void> {
    for await (const record of records.stream({ filter, fields })) {
      const line = `${JSON.stringify(options.documents ? record.data : recordJson(record))}\n`;
      written.records++;
      written.bytes += Buffer.byteLength(line);
      progress.show({ ...written, of });
      yield line;
    }
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
  out.write(
    json
      ? `${JSON.stringify({ file: options.file, ...written }, null, 2)}\n`
      : `Exported ${counted(written.records, 'record')} to ${options.file} in ${took}.\n`,
  );
}
