import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import { withConnection, withDatabase, withView, type ConnectionFlags } from './connection.js';

interface CreateFlags extends ConnectionFlags {
  unique?: boolean;
  sparse?: boolean;
  wait: boolean;
}

export function addIndex(db: CtlCommand, tools: Tools): void {
  const group = db
    .command('index')
    .summary('Manage indexes: list, create, drop, advise')
    .description('Show and change the indexes of the database. This needs admin access.')
    .example('ctl db index list', 'all of them')
    .example('ctl db index create people city age', 'one over two fields')
    .example('ctl db index advise', 'which ones slow queries lack');
  const list = group
    .command('list')
    .summary('List indexes')
    .description('List the indexes of a collection, or of all collections.')
    .argument('[collection]', 'name of the collection')
    .example('ctl db index list', 'of all collections')
    .example('ctl db index list people --json', 'for scripts: {"indexes": [...]}')
    .exitCode(1, 'no such collection, or failure');
  withView(list, tools).action(async (collection: string | undefined, flags: ConnectionFlags) => {
    const { listIndexes } = await import('./catalog.js');
    await withDatabase(tools, flags, (database) => listIndexes(database, collection, tools));
  });
  addCreate(group, tools);
  const drop = group
    .command('drop')
    .summary('Drop an index')
    .description('Drop an index. One that the settings of the server declare is refused.')
    .argument('<collection>', 'name of the collection')
    .argument('<fields...>', 'fields of the index, in order: city age, or city,age')
    .example('ctl db index drop people city age', 'the index over city and age')
    .exitCode(1, 'no such index, or failure');
  withConnection(drop, tools).action(
    async (collection: string, fields: string[], flags: ConnectionFlags) => {
      const { dropIndex } = await import('./indexes.js');
      await withDatabase(tools, flags, (database) =>
        dropIndex(database, collection, fields, tools),
      );
    },
  );
  const advise = group
    .command('advise')
    .summary('Show which indexes slow queries lack')
    .description(
      'Show the indexes that would have served the slow queries since the start of the server. ' +
        'A query is slow after slow_query_ms (default: 200).',
    )
    .argument('[collection]', 'name of the collection')
    .example('ctl db index advise', 'for all collections')
    .example('ctl db index advise people --json', 'for scripts: {"advice": [...]}')
    .exitCode(1, 'no such collection, or failure');
  withConnection(advise, tools).action(
    async (collection: string | undefined, flags: ConnectionFlags) => {
      const { adviseIndexes } = await import('./indexes.js');
      await withDatabase(tools, flags, (database) => adviseIndexes(database, collection, tools));
    },
  );
}

function addCreate(group: CtlCommand, tools: Tools): void {
  const create = group
    .command('create')
    .summary('Create an index')
    .description('Create an index, build it while the database serves, and wait until it is ready.')
    .argument('<collection>', 'name of the collection')
    .argument('<fields...>', 'dotted paths, in order: city age, or city,age')
    .option('--unique', 'No two records may have the same values')
    .option('--sparse', 'Leave out records without the fields')
    .option('--no-wait', 'Return before it is built')
    .example('ctl db index create people city age', 'over two fields')
    .example('ctl db index create people email --unique --sparse', 'no email twice')
    .exitCode(1, 'it cannot be built, such as a unique one over equal values, or failure');
  withConnection(create, tools).action(
    async (collection: string, fields: string[], flags: CreateFlags) => {
      const { createIndex } = await import('./indexes.js');
      const options = {
        collection,
        fields,
        unique: flags.unique ?? false,
        sparse: flags.sparse ?? false,
        wait: flags.wait,
      };
      await withDatabase(tools, flags, (database) => createIndex(database, options, tools));
    },
  );
}
