import type { CtlCommand } from '../command.js';
import type { Tools } from '../tools.js';
import { withConditions } from './conditions-help.js';
import { withConnection, withDatabase, type ConnectionFlags } from './connection.js';

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
        import('./arguments.js'),
      ]);
      const options = { collection, filter: filterOf(conditions, flags.filter) };
      await withDatabase(tools, flags, (database) => countRecords(database, options, tools));
    },
  );
}

export function addCollection(db: CtlCommand, tools: Tools): void {
  const group = db
    .command('collection')
    .summary('Show collections: list, show')
    .description('Show the collections of the database. This needs admin access.')
    .example('ctl db collection list', 'all of them')
    .example('ctl db collection show people', 'one');
  const list = group
    .command('list')
    .summary('List collections')
    .description('List the collections with their record counts, TTLs and indexes.')
    .example('ctl db collection list', 'as a table')
    .example('ctl db collection list --json', 'for scripts: {"collections": [...]}');
  withConnection(list, tools).action(async (flags: ConnectionFlags) => {
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
}

export function addIndex(db: CtlCommand, tools: Tools): void {
  const group = db
    .command('index')
    .summary('Show indexes: list')
    .description('Show the indexes of the database. This needs admin access.')
    .example('ctl db index list', 'all of them');
  const list = group
    .command('list')
    .summary('List indexes')
    .description('List the indexes of a collection, or of all collections.')
    .argument('[collection]', 'name of the collection')
    .example('ctl db index list', 'of all collections')
    .example('ctl db index list people --json', 'for scripts: {"indexes": [...]}')
    .exitCode(1, 'no such collection, or failure');
  withConnection(list, tools).action(
    async (collection: string | undefined, flags: ConnectionFlags) => {
      const { listIndexes } = await import('./catalog.js');
      await withDatabase(tools, flags, (database) => listIndexes(database, collection, tools));
    },
  );
}
