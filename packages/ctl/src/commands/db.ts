import { addCommands } from '../base/declared.js';
import type { TopCommand } from '../base/groups.js';
import { connectedCommands, localCommands } from '../db/admin-commands.js';
import { databaseServer, type ConnectedTools } from '../db/connection.js';
import { conditionsSection } from '../db/record-commands.js';

export const top: Readonly<Record<string, TopCommand>> = {
  db: {
    server: databaseServer,
    description:
      'Run the database server, and read and write records. Commands find a server on this ' +
      'machine by its socket, then at 127.0.0.1:5433; --url names another. With --json, ' +
      'commands print the response of the REST API.',
    examples: [
      ['ctl db serve --data ./data', 'start a server'],
      [`ctl db put people ada '{"name":"Ada","age":36}'`, 'write a record'],
      ["ctl db find people 'age>30' city=Bern", 'find records'],
    ],
    section: conditionsSection,
    serve: {
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
    },
    commands: {
      ...connectedCommands(false),
      ...localCommands,
      shell: {
        summary: 'Open an interactive shell of the database',
        description:
          'Read commands from the keyboard, with history and completion, or from a file. They ' +
          'are those of `ctl db`, without `ctl db`. A line with an open bracket continues on ' +
          'the next one.',
        examples: [
          ['ctl db shell', 'type help in it'],
          ['ctl db shell < steps.txt', 'stop at the first line that fails'],
        ],
        run: async () => openShell,
      },
    },
  },
};

async function openShell(_flags: object, tools: ConnectedTools): Promise<void> {
  const { runShell } = await import('../db/shell/shell.js');
  const database = await tools.connected();
  await runShell(database, tools, (parent, given) =>
    addCommands(parent, connectedCommands(true), given, databaseServer({ ...given, database })),
  );
}
