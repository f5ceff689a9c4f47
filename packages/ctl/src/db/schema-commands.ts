import { Option } from 'commander';
import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import { withConnection, withDatabase, withView, type ConnectionFlags } from './connection.js';

interface SetFlags extends ConnectionFlags {
  validate: 'strict' | 'warn';
  force?: boolean;
}

export function addSchema(db: CtlCommand, tools: Tools): void {
  const group = db
    .command('schema')
    .summary('Validate records: set, show, remove, list')
    .description(
      'Manage the JSON Schemas of collections. A schema is stored in the database and validates ' +
        'the writes of every client.',
    )
    .example('ctl db schema set people person.json', 'validate every write')
    .example('ctl db schema list', 'which collections have one');
  addSet(group, tools);
  const show = group
    .command('show')
    .summary('Show the schema of a collection')
    .description('Print the JSON Schema of a collection.')
    .argument('<collection>', 'name of the collection')
    .example('ctl db schema show people > person.json', 'to a file')
    .example('ctl db schema show people --json', 'for scripts: {"schema": ...}')
    .exitCode(1, 'the collection has no schema, or failure');
  withConnection(show, tools).action(async (collection: string, flags: ConnectionFlags) => {
    const { showSchema } = await import('./schemas.js');
    await withDatabase(tools, flags, (database) => showSchema(database, collection, tools));
  });
  const remove = group
    .command('remove')
    .summary('Remove the schema of a collection')
    .description('Stop validating the writes of a collection. Its records stay as they are.')
    .argument('<collection>', 'name of the collection')
    .example('ctl db schema remove people', 'allow any document')
    .exitCode(1, 'the collection has no schema, or failure');
  withConnection(remove, tools).action(async (collection: string, flags: ConnectionFlags) => {
    const { removeSchema } = await import('./schemas.js');
    await withDatabase(tools, flags, (database) => removeSchema(database, collection, tools));
  });
  const list = group
    .command('list')
    .summary('List schemas')
    .description('List the collections that have a schema, and how many writes violated it.')
    .example('ctl db schema list', 'as a table')
    .example('ctl db schema list --json', 'for scripts: {"schemas": [...]}');
  withView(list, tools).action(async (flags: ConnectionFlags) => {
    const { listSchemas } = await import('./schemas.js');
    await withDatabase(tools, flags, (database) => listSchemas(database, tools));
  });
}

function addSet(group: CtlCommand, tools: Tools): void {
  const command = group
    .command('set')
    .summary('Set the schema of a collection')
    .description(
      'Validate every write of a collection with a JSON Schema (2020-12). If existing records ' +
        'do not match, they are listed and nothing changes, unless you add --force.',
    )
    .argument('<collection>', 'name of the collection')
    .argument('<file>', 'JSON file with the schema, or - for stdin')
    .addOption(
      new Option('--validate <mode>', 'Refuse documents that do not match, or log and count them')
        .choices(['strict', 'warn'])
        .default('strict'),
    )
    .option('--force', 'Set the schema although existing records do not match')
    .example('ctl db schema set people person.json', 'refuse what does not match')
    .example('ctl db schema set people person.json --validate warn', 'only log and count')
    .exitCode(1, 'existing records do not match, or failure');
  withConnection(command, tools).action(
    async (collection: string, file: string, flags: SetFlags) => {
      const { setSchema, readSchema } = await import('./schemas.js');
      const schema = await readSchema(file, tools.terminal);
      const options = { collection, schema, validate: flags.validate, force: flags.force ?? false };
      await withDatabase(tools, flags, (database) => setSchema(database, options, tools));
    },
  );
}
