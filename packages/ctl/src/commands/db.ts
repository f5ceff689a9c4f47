import type { CtlCommand } from '../base/command.js';
import {
  addBackup,
  addCompact,
  addPromote,
  addRestore,
  addStatus,
  addVerify,
} from '../db/admin-commands.js';
import { addCollection, addCount } from '../db/catalog-commands.js';
import { withConditions } from '../db/conditions-help.js';
import { addIndex } from '../db/index-commands.js';
import { addKeys } from '../db/key-commands.js';
import { addAggregate, addFind, addGet, addWatch } from '../db/read-commands.js';
import { addSchema } from '../db/schema-commands.js';
import { addServe } from '../base/serve-command.js';
import { addShell } from '../db/shell/shell-command.js';
import { addExport, addImport } from '../db/transfer-commands.js';
import { addDelete, addInsert, addPut, addTx } from '../db/write-commands.js';
import type { Tools } from '../base/tools.js';

export async function build(db: CtlCommand, tools: Tools): Promise<void> {
  db.description(
    'Run the database server, and read and write records. Commands find a server on this ' +
      'machine by its socket, then at 127.0.0.1:5433; --url names another. With --json, ' +
      'commands print the response of the REST API.',
  )
    .example('ctl db serve --data ./data', 'start a server')
    .example(`ctl db put people ada '{"name":"Ada","age":36}'`, 'write a record')
    .example("ctl db find people 'age>30' city=Bern", 'find records');
  withConditions(db);
  await addServe(db, tools, {
    summary: 'Run the database server',
    description:
      'Serve a database over gRPC, REST and a Unix socket until Ctrl-C, which waits for ' +
      'calls in flight. gRPC and REST need an API key: without --keys-file the first start ' +
      'creates one in db.key of the data directory, which commands find by themselves; the socket ' +
      'needs none. Every setting can come from a file (--config db.yaml), a variable or a ' +
      'flag. Prints one line of JSON for each listener when it is ready; logs go to stderr.',
    examples: [
      ['ctl db serve', 'gRPC on 5433, REST on 8080, data in ./data'],
      ['ctl db serve --config db.yaml --data /srv/db', 'with a config file'],
      ['ctl db serve --grpc 127.0.0.1:0 --http 127.0.0.1:0', 'on any free ports'],
    ],
    config: async () => (await import('@millrace/db/config')).databaseConfig,
    serve: async () => (await import('@millrace/db/serve')).runDatabase,
    noAuth: 'Require no API key, on a loopback address only (the same as --auth none)',
  });
  addRecordCommands(db, tools);
  addRestore(db, tools);
  addVerify(db, tools);
  addKeys(db, tools);
  addShell(db, tools, addRecordCommands);
}

/** Commands that need only a connection; the shell has them too. */
function addRecordCommands(db: CtlCommand, tools: Tools): void {
  addGet(db, tools);
  addPut(db, tools);
  addInsert(db, tools);
  addDelete(db, tools);
  addFind(db, tools);
  addCount(db, tools);
  addAggregate(db, tools);
  addWatch(db, tools);
  addTx(db, tools);
  addImport(db, tools);
  addExport(db, tools);
  addCollection(db, tools);
  addIndex(db, tools);
  addSchema(db, tools);
  addStatus(db, tools);
  addBackup(db, tools);
  addCompact(db, tools);
  addPromote(db, tools);
}
