import type { CtlCommand } from '../command.js';
import type { Tools } from '../tools.js';
import type { TokenFlags, TokensFileFlags } from './tokens.js';

export function addToken(queue: CtlCommand, tools: Tools): void {
  const token = queue
    .command('token')
    .summary('Make, list and revoke bearer tokens')
    .description(
      'Works on the tokens file of a server. A server that runs reads it again by itself within ' +
        'seconds, or at once on SIGHUP.',
    )
    .example(
      "ctl queue token new --principal me --grant '*:admin' --tokens-file tokens.yaml",
      'a token that may do everything',
    )
    .example('ctl queue token list --tokens-file tokens.yaml', 'who has access')
    .example('ctl queue token revoke 0abc --tokens-file tokens.yaml', 'take it back');
  addNew(token, tools);
  withFile(
    token
      .command('list')
      .summary('Show the tokens')
      .description('Shows whom the tokens of the file stand for, what they may do and how long.')
      .example('ctl queue token list --tokens-file tokens.yaml', 'as a table')
      .example('ctl queue token list --config queue.yaml --json', 'for scripts'),
  ).action(async (flags: TokensFileFlags) => {
    const { listTokens } = await import('./tokens.js');
    await listTokens(flags, tools);
  });
  withFile(
    token
      .command('revoke')
      .summary('Take a token back')
      .description('Removes a token from the file. Requests that are under way finish.')
      .argument('<id>', 'id of the token: what stands between mr_ and the next underscore')
      .example('ctl queue token revoke 0abc --tokens-file tokens.yaml', 'by its id')
      .exitCode(1, 'no such token, or failure'),
  ).action(async (id: string, flags: TokensFileFlags) => {
    const { revokeToken } = await import('./tokens.js');
    await revokeToken(id, flags, tools);
  });
}

function addNew(token: CtlCommand, tools: Tools): void {
  withFile(
    token
      .command('new')
      .summary('Make a token and show it once')
      .description(
        'Makes a token and shows it with its entry for the tokens file; with --tokens-file, adds ' +
          'the entry there, making the file when it is not there. The file keeps only a hash of ' +
          'the token: it cannot be shown again.',
      )
      .option(
        '--principal <name>',
        'Whom the token stands for, as in the audit log (default: your user name)',
      )
      .option(
        '--grant <queues:role...>',
        'What it may do: mail:submitter, payments.*:operator, *:admin (each role includes the ' +
          'ones before it); needed with --tokens-file',
      )
      .option('--id <id>', 'Name of the token, no secret (default: one is made)')
      .option('--expires <when>', 'After this long or at this time: 90d, 2030-01-31T00:00:00Z')
      .example(
        "ctl queue token new --principal shop --grant 'payments.*:submitter'",
        'show a token and its entry',
      )
      .example(
        "ctl queue token new --principal me --grant '*:admin' --tokens-file tokens.yaml",
        'add it to a file',
      ),
  ).action(async (flags: TokenFlags) => {
    const { newQueueToken } = await import('./tokens.js');
    await newQueueToken(flags, tools);
  });
}

function withFile(command: CtlCommand): CtlCommand {
  return command
    .option('--tokens-file <file>', 'Tokens file of the server')
    .option('--config <file>', 'Settings of the server, for their tokens_file');
}
