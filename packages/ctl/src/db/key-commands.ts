import type { CtlCommand } from '../command.js';
import type { Tools } from '../tools.js';

interface FileFlags {
  keysFile?: string;
  config?: string;
}

interface CreateFlags extends FileFlags {
  id?: string;
  scope: string[];
  expires?: string;
}

export function addKeys(db: CtlCommand, tools: Tools): void {
  const keys = db
    .command('keys')
    .summary('Create, list and revoke API keys')
    .description(
      'Edits the keys file of a server. A server that runs reads it again by itself within ' +
        'seconds, or at once on SIGHUP.',
    )
    .example("ctl db keys create --keys-file keys.yaml --scope '*:write'", 'a key for an app')
    .example('ctl db keys list --keys-file keys.yaml', 'who has access')
    .example('ctl db keys revoke app --keys-file keys.yaml', 'take it back');

  withFile(
    keys
      .command('create')
      .summary('Make a key and show it once')
      .description(
        'Makes a key, adds it to the keys file and shows it. The file keeps only a hash of it: ' +
          'it cannot be shown again.',
      )
      .option('--id <id>', 'Name of the key, no secret (default: one is made)')
      .requiredOption(
        '--scope <collections:access...>',
        'What it may do: people:read, orders.*:write, *:admin (admin includes write includes read)',
      )
      .option('--expires <when>', 'After this long or at this time: 90d, 2030-01-31T00:00:00Z')
      .example("ctl db keys create --keys-file keys.yaml --scope '*:admin'", 'may do everything')
      .example(
        "ctl db keys create --config db.yaml --id app --scope 'o.*:write' people:read",
        'two scopes, in the keys file that the settings name',
      ),
  ).action(async (flags: CreateFlags) => {
    const { createKey } = await import('./keys.js');
    await createKey(flags, tools);
  });

  withFile(
    keys
      .command('list')
      .summary('Show the keys')
      .description('Shows the keys of the file: their names, what they may do, when they expire.')
      .example('ctl db keys list --keys-file keys.yaml', 'as a table')
      .example('ctl db keys list --keys-file keys.yaml --json', 'for scripts'),
  ).action(async (flags: FileFlags) => {
    const { listKeys } = await import('./keys.js');
    await listKeys(flags, tools);
  });

  withFile(
    keys
      .command('revoke')
      .summary('Take a key back')
      .description('Removes a key from the file. Calls that are under way finish.')
      .argument('<id>', 'name of the key: what stands before the first dot of it')
      .example('ctl db keys revoke app --keys-file keys.yaml', 'by its name')
      .exitCode(1, 'no such key, or failure'),
  ).action(async (id: string, flags: FileFlags) => {
    const { revokeKey } = await import('./keys.js');
    await revokeKey(id, flags, tools);
  });
}

function withFile(command: CtlCommand): CtlCommand {
  return command
    .option('--keys-file <file>', 'Keys file (default: the one that the settings name)')
    .option('--config <file>', 'Settings of the server, for their keys_file');
}
