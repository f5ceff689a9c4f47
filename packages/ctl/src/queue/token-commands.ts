import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import type { TokenFlags, TokensFileFlags } from './tokens.js';

export function addToken(queue: CtlCommand, tools: Tools): void {
  const token = queue
    .command('token')
    .summary('Manage bearer tokens: create, list, revoke')
    .description(
      'Edit the tokens file of a server. A running server reloads it within seconds, or at ' +
        'once on SIGHUP.',
    )
    .example(
      "ctl queue token new --principal me --grant '*:admin' --tokens-file tokens.yaml",
      'a token that may do everything',
    )
    .example('ctl queue token list --tokens-file tokens.yaml', 'who has access')
    .example('ctl queue token revoke 0abc --tokens-file tokens.yaml', 'revoke it');
  addNew(token, tools);
  withFile(
    token
      .command('list')
      .summary('List tokens')
      .description('List the tokens of the file: their principals, grants and expiry.')
      .example('ctl queue token list --tokens-file tokens.yaml', 'as a table')
      .example('ctl queue token list --config queue.yaml --json', 'for scripts'),
  )
    .shown(tools)
    .action(async (flags: TokensFileFlags) => {
      const { listTokens } = await import('./tokens.js');
      await listTokens(flags, tools);
    });
  withFile(
    token
      .command('revoke')
      .summary('Revoke a token')
      .description('Remove a token from the file. Requests in flight finish.')
      .argument('<id>', 'id of the token: the part between mr_ and the next underscore')
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
      .summary('Create a token and show it once')
      .description(
        'Create a token and print it with its entry for the tokens file; with ' +
          '--tokens-file, add the entry to that file, creating it if necessary. The file ' +
          'contains only a hash, so the token cannot be shown again.',
      )
      .option(
        '--principal <name>',
        'Principal of the token, as in the audit log (default: your user name)',
      )
      .option(
        '--grant <queues:role...>',
        'What it may do: mail:submitter, mail:worker, payments.*:operator, *:admin (operator ' +
          'includes submitter and worker, admin all); required with --tokens-file',
      )
      .option('--id <id>', 'Id of the token, not secret (default: generated)')
      .option('--expires <when>', 'When it expires: after 90d, or at 2030-01-31T00:00:00Z')
      .example(
        "ctl queue token new --principal shop --grant 'payments.*:submitter'",
        'print a token and its entry',
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
    .option('--config <file>', 'Config file of the server, for its tokens_file');
}
