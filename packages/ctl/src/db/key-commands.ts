import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';

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
    .summary('Manage API keys: create, list, revoke')
    .description(
      'Edit the keys file of a server. A running server reloads it within seconds, or at ' +
        'once on SIGHUP.',
    )
    .example("ctl db keys create --keys-file keys.yaml --scope '*:write'", 'a key for an app')
    .example('ctl db keys list --keys-file keys.yaml', 'who has access')
    .example('ctl db keys revoke app --keys-file keys.yaml', 'revoke it');

  withFile(
    keys
      .command('create')
      .summary('Create a key and show it once')
      .description(
        'Create a key, add it to the keys file and print it. The file contains only a ' +
          'hash, so the key cannot be shown again.',
      )
      .option('--id <id>', 'Id of the key, not secret (default: generated)')
      .requiredOption(
        '--scope <collections:access...>',
        'What it may do: people:read, orders.*:write, *:admin (admin includes write ' +
          'includes read)',
      )
      .option('--expires <when>', 'When it expires: after 90d, or at 2030-01-31T00:00:00Z')
      .example("ctl db keys create --keys-file keys.yaml --scope '*:admin'", 'may do everything')
      .example(
        "ctl db keys create --config db.yaml --id app --scope 'o.*:write' people:read",
        'two scopes, in the keys file of the settings',
      ),
  ).action(async (flags: CreateFlags) => {
    const { createKey } = await import('./keys.js');
    await createKey(flags, tools);
  });

  withFile(
    keys
      .command('list')
      .summary('List keys')
      .description('List the keys of the file: their ids, what they may do, when they expire.')
      .example('ctl db keys list --keys-file keys.yaml', 'as a table')
      .example('ctl db keys list --keys-file keys.yaml --json', 'for scripts'),
  )
    .shown(tools)
    .action(async (flags: FileFlags) => {
      const { listKeys } = await import('./keys.js');
      await listKeys(flags, tools);
    });

  withFile(
    keys
      .command('revoke')
      .summary('Revoke a key')
      .description('Remove a key from the file. Calls in flight finish.')
      .argument('<id>', 'id of the key: its part before the first dot')
      .example('ctl db keys revoke app --keys-file keys.yaml', 'by its id')
      .exitCode(1, 'no such key, or failure'),
  ).action(async (id: string, flags: FileFlags) => {
    const { revokeKey } = await import('./keys.js');
    await revokeKey(id, flags, tools);
  });
}

function withFile(command: CtlCommand): CtlCommand {
  return command
    .option('--keys-file <file>', 'Keys file (default: from the settings)')
    .option('--config <file>', 'Config file of the server, for its keys_file');
}
