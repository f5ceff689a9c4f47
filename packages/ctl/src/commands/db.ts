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
import { addServe } from '../db/serve-command.js';
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
  await addServe(db, tools);
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
