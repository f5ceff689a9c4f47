import type { CtlCommand } from '../base/command.js';
import { addCommands, type CodeCommand, type Connect } from '../base/declared.js';
import { addServe } from '../base/serve-command.js';
import type { Tools } from '../base/tools.js';
import { addDatabaseCommands, addShellCommands } from '../db/admin-commands.js';
import { withConnection, withDatabase, type ConnectionFlags } from '../db/connection.js';
import { conditionsSection } from '../db/record-commands.js';

export async function build(db: CtlCommand, tools: Tools): Promise<void> {
  db.description(
    'Run the database server, and read and write records. Commands find a server on this ' +
      'machine by its socket, then at 127.0.0.1:5433; --url names another. With --json, ' +
      'commands print the response of the REST API.',
  )
    .example('ctl db serve --data ./data', 'start a server')
    .example(`ctl db put people ada '{"name":"Ada","age":36}'`, 'write a record')
    .example("ctl db find people 'age>30' city=Bern", 'find records');
  db.section(...conditionsSection);
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
  addDatabaseCommands(db, tools);
  const connect: Connect = (command) => withConnection(command, tools);
  addCommands(db, { shell: shellCommand(tools) }, tools, { connect });
}

const shellCommand = (tools: Tools): CodeCommand => ({
  summary: 'Open an interactive shell of the database',
  description:
    'Read commands from the keyboard, with history and completion, or from a file. They ' +
    'are those of `ctl db`, without `ctl db`. A line with an open bracket continues on ' +
    'the next one.',
  examples: [
    ['ctl db shell', 'type help in it'],
    ['ctl db shell < steps.txt', 'stop at the first line that fails'],
  ],
  run: async (flags: ConnectionFlags) => {
    const { runShell } = await import('../db/shell/shell.js');
    await withDatabase(tools, flags, (database) => runShell(database, tools, addShellCommands));
  },
});
