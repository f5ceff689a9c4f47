import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import { withConditions } from './conditions-help.js';
import { withConnection, withDatabase, withView, type ConnectionFlags } from './connection.js';

interface CountFlags extends ConnectionFlags {
  filter?: string;
}

export function addCount(db: CtlCommand, tools: Tools): void {
  const command = db
    .command('count')
    .summary('Count records')
    .description('Show the number of records of a collection that match all conditions.')
    .argument('<collection>', 'name of the collection')
    .argument('[conditions...]', "such as 'age>30' city=Bern")
    .option('--filter <json>', 'Condition as JSON')
    .example('ctl db count people', 'all records')
    .example("ctl db count people 'age>30'", 'those that match')
    .exitCode(1, 'no such collection, or failure');
  withConnection(withConditions(command), tools).action(
    async (collection: string, conditions: string[], flags: CountFlags) => {
      const [{ countRecords }, { filterOf }] = await Promise.all([
        import('./catalog.js'),
        import('../base/arguments.js'),
      ]);
      const options = { collection, filter: filterOf(conditions, flags.filter) };
      await withDatabase(tools, flags, (database) => countRecords(database, options, tools));
    },
  );
}

export function addCollection(db: CtlCommand, tools: Tools): void {
  const group = db
    .command('collection')
    .summary('Manage collections: list, show, drop, rename')
    .description('Show and change the collections of the database. This needs admin access.')
    .example('ctl db collection list', 'all of them')
    .example('ctl db collection show people', 'one')
    .example('ctl db collection rename people persons', 'rename one');
  const list = group
    .command('list')
    .summary('List collections')
    .description('List the collections with their record counts, TTLs and indexes.')
    .example('ctl db collection list', 'as a table')
    .example('ctl db collection list --json', 'for scripts: {"collections": [...]}');
  withView(list, tools).action(async (flags: ConnectionFlags) => {
    const { listCollections } = await import('./catalog.js');
    await withDatabase(tools, flags, (database) => listCollections(database, tools));
  });
  const show = group
    .command('show')
    .summary('Show a collection')
    .description('Show the record count, TTL and indexes of a collection.')
    .argument('<collection>', 'name of the collection')
    .example('ctl db collection show people', 'as a table')
    .example('ctl db collection show people --json', 'for scripts: {"collection": ...}')
    .exitCode(1, 'no such collection, or failure');
  withConnection(show, tools).action(async (collection: string, flags: ConnectionFlags) => {
    const { showCollection } = await import('./catalog.js');
    await withDatabase(tools, flags, (database) => showCollection(database, collection, tools));
  });
  addCollectionChanges(group, tools);
}

function addCollectionChanges(group: CtlCommand, tools: Tools): void {
  const drop = group
    .command('drop')
    .summary('Drop a collection')
    .description(
      'Delete a collection with its records, schema and indexes. On a terminal it asks first.',
    )
    .argument('<collection>', 'name of the collection')
    .option('--yes', 'Do not ask')
    .example('ctl db collection drop people', 'after a question')
    .example('ctl db collection drop people --yes --json', 'for scripts: {"deleted": 12, ...}')
    .exitCode(1, 'no such collection, not confirmed, or failure');
  withConnection(drop, tools).action(
    async (collection: string, flags: ConnectionFlags & { yes?: boolean }) => {
      const { dropCollection } = await import('./catalog-changes.js');
      const options = { collection, isConfirmed: flags.yes ?? false };
      await withDatabase(tools, flags, (database) => dropCollection(database, options, tools));
    },
  );
  const rename = group
    .command('rename')
    .summary('Rename a collection')
    .description(
      'Move the records, schema and indexes of a collection to a new name. Stop its writers ' +
        'first: until the end the records are in two collections. Repeat it after a failure.',
    )
    .argument('<collection>', 'name of the collection')
    .argument('<new-name>', 'the new name')
    .example('ctl db collection rename people persons', 'rename people')
    .exitCode(1, 'no such collection, the new name is taken, or failure');
  withConnection(rename, tools).action(
    async (collection: string, newName: string, flags: ConnectionFlags) => {
      const { renameCollection } = await import('./catalog-changes.js');
      const names = { collection, newName };
      await withDatabase(tools, flags, (database) => renameCollection(database, names, tools));
    },
  );
}
