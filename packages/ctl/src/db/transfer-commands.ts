import type { Commands } from '../base/declared.js';
import { collectionArgument, conditionsSection } from './record-commands.js';

/** The commands that move records from and to files. */
export const transferCommands: Commands = {
  import: {
    summary: 'Import records from NDJSON, CSV or a JSON array',
    description:
      'Write one record per line: {"key", "data"} as written by `ctl db export`, or any ' +
      'JSON object as a document. A record with a key replaces an existing one, so you can ' +
      'repeat an interrupted import; one with only an id is written with that id; others ' +
      'are inserted again each time. In CSV the header has paths: numbers, true and false are ' +
      'recognised unless they are in quotes, an empty cell is a missing field, $key and $id are ' +
      'those of the record.',
    arguments: [collectionArgument, ['[file]', 'file, or - for stdin (the default)']],
    options: [
      [
        '--format <format>',
        'Format of the file (default: by its name, otherwise ndjson)',
        { choices: ['csv', 'json', 'ndjson'] },
      ],
      ['--types <list>', 'Types of CSV columns: name:text,qty:number,tags:json; also boolean'],
      ['--key-field <path>', 'Take the key from this field of the document'],
      ['--documents', 'Treat every line as a document'],
      ['--merge', 'Merge into existing records instead of replacing them'],
      ['--batch <number>', 'Records per bulk write, at most 10000 (default: 1000)'],
      ['--start-line <number>', 'Start with this line, to resume an import'],
      ['--keep-going', 'Skip lines that cannot be written, and report them at the end'],
    ],
    examples: [
      ['ctl db import people people.ndjson', 'from a file'],
      ['ctl db import people --key-field email < users.ndjson', 'keys from the documents'],
      ['ctl db import people people.csv --types zip:text', 'from a spreadsheet'],
    ],
    exitCodes: { 1: 'failure, or with --keep-going some lines were not written' },
    run: async () => (await import('./importing.js')).importRecords,
  },
  migrate: {
    summary: 'Migrate the documents of a collection to the last version',
    description:
      'Run the functions of a JavaScript module over every record that is of an older version, in ' +
      'batches and with revision checks: export const migrations = [{ version: 1, up(doc) {} }]. ' +
      'Repeat it after a failure or an interruption: it resumes, and migrates no record twice. ' +
      'What is written while it runs must be of the last version already.',
    arguments: [collectionArgument],
    options: [
      ['--module <file>', 'Module with the migrations', { required: true }],
      ['--batch <number>', 'Records per bulk write, at most 10000 (default: 500)'],
    ],
    examples: [
      ['ctl db migrate people --module people.migrations.mjs', 'all records'],
      [
        'ctl db migrate people --module people.migrations.mjs --json',
        'for scripts: {"migrated": 12}',
      ],
    ],
    exitCodes: { 1: 'a migration failed for a record, or failure' },
    run: async () => (await import('./migrating.js')).migrateCollection,
  },
  export: {
    summary: 'Export a collection as NDJSON, CSV or a JSON array',
    description:
      'Write every record of a collection, or those that match the conditions, as one line ' +
      'of JSON each, from one snapshot. `ctl db import` reads it. To copy the whole ' +
      'database, use `ctl db backup`.',
    arguments: [collectionArgument, ['[conditions...]', "such as 'age>30' city=Bern"]],
    options: [
      ['--out <file>', 'Write to this file, created when it is complete (default: stdout)'],
      [
        '--format <format>',
        'Format of the file (default: by its name, otherwise ndjson); -o csv is csv',
        { choices: ['csv', 'json', 'ndjson'] },
      ],
      ['--filter <json>', 'Condition as JSON'],
      ['--fields <paths>', 'Write only these fields: name,address.city'],
      ['--documents', 'Write only the documents, without id, key and times'],
    ],
    examples: [
      ['ctl db export people --out people.ndjson', 'to a file'],
      ['ctl db export people city=Bern | wc -l', 'to another program'],
      ['ctl db export people -o csv', 'for a spreadsheet'],
    ],
    run: async () => (await import('./exporting.js')).exportRecords,
    section: conditionsSection,
  },
};
