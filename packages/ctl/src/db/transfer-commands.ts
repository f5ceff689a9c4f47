import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import { withConditions } from './conditions-help.js';
import { withConnection, withDatabase, type ConnectionFlags } from './connection.js';

interface ImportFlags extends ConnectionFlags {
  keyField?: string;
  documents?: boolean;
  merge?: boolean;
  batch?: string;
  startLine?: string;
  keepGoing?: boolean;
}

export function addImport(db: CtlCommand, tools: Tools): void {
  const command = db
    .command('import')
    .summary('Import records from NDJSON')
    .description(
      'Write one record per line: {"key", "data"} as written by `ctl db export`, or any ' +
        'JSON object as a document. A record with a key replaces an existing one, so you can ' +
        'repeat an interrupted import; one with only an id is written with that id; others ' +
        'are inserted again each time.',
    )
    .argument('<collection>', 'name of the collection')
    .argument('[file]', 'NDJSON file, or - for stdin (the default)')
    .option('--key-field <path>', 'Take the key from this field of the document')
    .option('--documents', 'Treat every line as a document')
    .option('--merge', 'Merge into existing records instead of replacing them')
    .option('--batch <number>', 'Records per bulk write, at most 10000 (default: 1000)')
    .option('--start-line <number>', 'Start with this line, to resume an import')
    .option('--keep-going', 'Skip lines that cannot be written, and report them at the end')
    .example('ctl db import people people.ndjson', 'from a file')
    .example('ctl db import people --key-field email < users.ndjson', 'keys from the documents')
    .exitCode(1, 'failure, or with --keep-going some lines were not written');
  withConnection(command, tools).action(
    async (collection: string, file: string | undefined, flags: ImportFlags) => {
      const [{ importRecords }, { wholeNumber }] = await Promise.all([
        import('./importing.js'),
        import('../base/arguments.js'),
      ]);
      const options = {
        collection,
        file,
        keyField: flags.keyField,
        documents: flags.documents ?? false,
        merge: flags.merge ?? false,
        batch: Math.min(wholeNumber(flags.batch, '--batch') || 1000, 10_000),
        startLine: wholeNumber(flags.startLine, '--start-line', 1) ?? 1,
        keepGoing: flags.keepGoing ?? false,
      };
      await withDatabase(tools, flags, (database) => importRecords(database, options, tools));
    },
  );
}

interface ExportFlags extends ConnectionFlags {
  filter?: string;
  fields?: string;
  documents?: boolean;
  out?: string;
}

export function addExport(db: CtlCommand, tools: Tools): void {
  const command = db
    .command('export')
    .summary('Export a collection as NDJSON')
    .description(
      'Write every record of a collection, or those that match the conditions, as one line ' +
        'of JSON each, from one snapshot. `ctl db import` reads it. To copy the whole ' +
        'database, use `ctl db backup`.',
    )
    .argument('<collection>', 'name of the collection')
    .argument('[conditions...]', "such as 'age>30' city=Bern")
    .option('--out <file>', 'Write to this file, created when it is complete (default: stdout)')
    .option('--filter <json>', 'Condition as JSON')
    .option('--fields <paths>', 'Write only these fields: name,address.city')
    .option('--documents', 'Write only the documents, without id, key and times')
    .example('ctl db export people --out people.ndjson', 'to a file')
    .example('ctl db export people city=Bern | wc -l', 'to another program');
  withConnection(withConditions(command), tools).action(
    async (collection: string, conditions: string[], flags: ExportFlags) => {
      const [{ exportRecords }, { filterOf, listOf }] = await Promise.all([
        import('./exporting.js'),
        import('../base/arguments.js'),
      ]);
      const options = {
        collection,
        filter: filterOf(conditions, flags.filter),
        fields: listOf(flags.fields),
        documents: flags.documents ?? false,
        file: flags.out,
      };
      await withDatabase(tools, flags, (database) => exportRecords(database, options, tools));
    },
  );
}
