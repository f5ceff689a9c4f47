import type { CtlCommand } from '../../base/command.js';
import type { Tools } from '../../base/tools.js';
import { withConnection, withDatabase, type ConnectionFlags } from '../connection.js';
import type { AddCommands } from './shell.js';

export function addShell(db: CtlCommand, tools: Tools, addCommands: AddCommands): void {
  const command = db
    .command('shell')
    .summary('Open an interactive shell of the database')
    .description(
      'Read commands from the keyboard, with history and completion, or from a file. They ' +
        'are those of `ctl db`, without `ctl db`. A line with an open bracket continues on ' +
        'the next one.',
    )
    .example('ctl db shell', 'type help in it')
    .example('ctl db shell < steps.txt', 'stop at the first line that fails');
  withConnection(command, tools).action(async (flags: ConnectionFlags) => {
    const { runShell } = await import('./shell.js');
    await withDatabase(tools, flags, (database) => runShell(database, tools, addCommands));
  });
}
