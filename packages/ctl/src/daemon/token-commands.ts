import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import type { TokenFlags } from './token.js';

export function addToken(daemon: CtlCommand, tools: Tools): void {
  const token = daemon
    .command('token')
    .summary('Manage the bearer token: show, create, rotate')
    .description(
      'Manage the tokens of the daemon. Its first start creates one. Works on the token ' +
        'files in the data directory, whether a daemon is running or not; a running daemon ' +
        'reads a changed file at its next request.',
    )
    .example('ctl daemon token generate', 'create one')
    .example('ctl daemon token show', 'to copy it into another program')
    .example('ctl daemon token rotate', 'if it has leaked');
  withPlace(
    token
      .command('show')
      .summary('Show the token')
      .description('Show the token of the daemon and where it comes from.')
      .example('ctl daemon token show', 'the token alone on stdout')
      .example('ctl daemon token show --read-only', 'the read-only token')
      .exitCode(1, 'there is none, or failure'),
  ).action(async (flags: TokenFlags) => {
    const { showToken } = await import('./token.js');
    await showToken(flags, tools);
  });
  withPlace(
    token
      .command('generate')
      .summary('Create a token if there is none')
      .description(
        'Create a token, write it to a file that only you can read, and print it. Fails if ' +
          'there is one already; replace that with `ctl daemon token rotate`.',
      )
      .example('ctl daemon token generate', 'before listening on the network')
      .example('ctl daemon token generate --read-only', 'for a read-only dashboard')
      .exitCode(1, 'there is one already, or failure'),
  ).action(async (flags: TokenFlags) => {
    const { generateToken } = await import('./token.js');
    await generateToken(flags, tools);
  });
  withPlace(
    token
      .command('rotate')
      .summary('Replace the token with a new one')
      .description('Replace the token with a new one. The old one is invalid at once.')
      .example('ctl daemon token rotate', 'then update the programs that use it')
      .example('ctl daemon token rotate --read-only', 'the read-only token')
      .exitCode(1, 'there is none to replace, or failure'),
  ).action(async (flags: TokenFlags) => {
    const { rotateToken } = await import('./token.js');
    await rotateToken(flags, tools);
  });
}

function withPlace(command: CtlCommand): CtlCommand {
  return command
    .option('--read-only', 'The read-only token')
    .option('--data <dir>', 'Data directory of the daemon (default: from its settings)')
    .option('--config <file>', 'Config file of the daemon, for its data_dir');
}
