import type { CtlCommand } from '../command.js';
import type { Tools } from '../tools.js';
import { withConnection, withDatabase, type ConnectionFlags } from './connection.js';
import type { AddCommands } from './shell/shell.js';

export function addShell(db: CtlCommand, tools: Tools, addCommands: AddCommands): void {
  const command = db
    .command('shell')
    .summary('Work with the database line by line')
    .description(
      'Reads commands from the keyboard, with history and completion, or from a file: those of ' +
        '`ctl db`, without the `ctl db`. A line that leaves a bracket open goes on in the next.',
    )
    .example('ctl db shell', 'type help in it')
    .example('ctl db shell < steps.txt', 'the first line that fails ends it');
  withConnection(command, tools).action(async (flags: ConnectionFlags) => {
    const { runShell } = await import('./shell/shell.js');
    await withDatabase(tools, flags, (database) => runShell(database, tools, addCommands));
  });
}
