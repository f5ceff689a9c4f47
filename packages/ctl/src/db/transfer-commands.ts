import type { CtlCommand } from '../command.js';
import type { Tools } from '../tools.js';
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
    .summary('Write records from NDJSON')
    .description(
      'Writes one record for each line: {"key", "data"} as `ctl db export` makes them, or any ' +
        'JSON object as a document. A record with a key replaces the one that is there, so an ' +
        'import that was cut off can simply be run again; one with only an id is written under ' +
        'that id; others are inserted anew each time.',
    )
    .argument('<collection>', 'name of the collection')
    .argument('[file]', 'NDJSON file, or - for stdin (the default)')
    .option('--key-field <path>', 'Take the key from this field of the document')
    .option('--documents', 'Every line is a document, whatever it looks like')
    .option('--merge', 'Merge into records that are there instead of replacing them')
    .option('--batch <number>', 'How many records to have under way at once (default: 64)')
    .option('--start-line <number>', 'Begin with this line, where an import stopped')
    .option('--keep-going', 'Pass over lines that cannot be written, and tell of them at the end')
    .example('ctl db import people people.ndjson', 'from a file')
    .example('ctl db import people --key-field email < users.ndjson', 'keys from the documents')
    .exitCode(1, 'failure, or with --keep-going some lines were not written');
  withConnection(command, tools).action(
    async (collection: string, file: string | undefined, flags: ImportFlags) => {
      const [{ importRecords }, { wholeNumber }] = await Promise.all([
        import('./importing.js'),
        import('./arguments.js'),
      ]);
      const ask = {
        collection,
        file,
        keyField: flags.keyField,
        documents: flags.documents ?? false,
        merge: flags.merge ?? false,
        batch: wholeNumber(flags.batch, '--batch') || 64,
        startLine: wholeNumber(flags.startLine, '--start-line') || 1,
        keepGoing: flags.keepGoing ?? false,
      };
      await withDatabase(tools, flags, (database) => importRecords(database, ask, tools));
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
    .summary('Write a collection as NDJSON')
    .description(
      'Writes every record of a collection, or those that meet the conditions, as one line of ' +
        'JSON each, all of one moment. `ctl db import` reads it. For a copy of the whole database ' +
        'see `ctl db backup`.',
    )
    .argument('<collection>', 'name of the collection')
    .argument('[conditions...]', "such as 'age>30' city=Bern")
    .option('--out <file>', 'Write to this file, which is there once it is whole (default: stdout)')
    .option('--filter <json>', 'Condition as JSON')
    .option('--fields <paths>', 'Write only these fields: name,address.city')
    .option('--documents', 'Write the documents alone, without id, key and times')
    .example('ctl db export people --out people.ndjson', 'to a file')
    .example('ctl db export people city=Bern | wc -l', 'to another program');
  withConnection(withConditions(command), tools).action(
    async (collection: string, conditions: string[], flags: ExportFlags) => {
      const [{ exportRecords }, { filterOf, listOf }] = await Promise.all([
        import('./exporting.js'),
        import('./arguments.js'),
      ]);
      const ask = {
        collection,
        filter: filterOf(conditions, flags.filter),
        fields: listOf(flags.fields),
        documents: flags.documents ?? false,
        file: flags.out,
      };
      await withDatabase(tools, flags, (database) => exportRecords(database, ask, tools));
    },
  );
}
