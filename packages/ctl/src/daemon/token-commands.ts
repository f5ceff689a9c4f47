import type { CtlCommand } from '../command.js';
import type { Tools } from '../tools.js';
import type { TokenFlags } from './token.js';

export function addToken(daemon: CtlCommand, tools: Tools): void {
  const token = daemon
    .command('token')
    .summary('Show, make and replace the bearer token')
    .description(
      'Manages the tokens that the daemon asks for. Its first start makes one by itself. ' +
        'Works on the token files in the data directory, whether a daemon runs or not; one that ' +
        'runs takes a changed file with its next request.',
    )
    .example('ctl daemon token generate', 'make one')
    .example('ctl daemon token show', 'to copy it into another program')
    .example('ctl daemon token rotate', 'when somebody has seen it');
  withPlace(
    token
      .command('show')
      .summary('Show the token')
      .description('Shows the token that the daemon asks for, and where it comes from.')
      .example('ctl daemon token show', 'the token alone on stdout')
      .example('ctl daemon token show --read-only', 'the one that may change nothing')
      .exitCode(1, 'there is none, or failure'),
  ).action(async (flags: TokenFlags) => {
    const { showToken } = await import('./token.js');
    await showToken(flags, tools);
  });
  withPlace(
    token
      .command('generate')
      .summary('Make a token where there is none')
      .description(
        'Makes a token, writes it to its file for you alone and shows it. Refuses when there is ' +
          'one already: `ctl daemon token rotate` replaces it.',
      )
      .example('ctl daemon token generate', 'before listening on the network')
      .example('ctl daemon token generate --read-only', 'for a dashboard that only looks')
      .exitCode(1, 'there is one already, or failure'),
  ).action(async (flags: TokenFlags) => {
    const { generateToken } = await import('./token.js');
    await generateToken(flags, tools);
  });
  withPlace(
    token
      .command('rotate')
      .summary('Replace the token by a new one')
      .description('Makes a new token in place of the old one, which from then on nobody can use.')
      .example('ctl daemon token rotate', 'then tell the programs that use it')
      .example('ctl daemon token rotate --read-only', 'the one that may change nothing')
      .exitCode(1, 'there is none to replace, or failure'),
  ).action(async (flags: TokenFlags) => {
    const { rotateToken } = await import('./token.js');
    await rotateToken(flags, tools);
  });
}

function withPlace(command: CtlCommand): CtlCommand {
  return command
    .option('--read-only', 'The token that may only read')
    .option('--data <dir>', 'Data directory of the daemon (default: that of its settings)')
    .option('--config <file>', 'Settings of the daemon, for their data_dir');
}
