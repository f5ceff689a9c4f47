import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import type { SecretAddFlags, SecretsFileFlags } from './secrets.js';

export function addSecret(queue: CtlCommand, tools: Tools): void {
  const secret = queue
    .command('secret')
    .summary('Manage the secrets of callbacks: add, list, remove')
    .description(
      'Edit the secrets file of a server on this machine. A running server reloads it within ' +
        'seconds, or at once on SIGHUP. Without a file, commands edit that of `ctl up`.',
    )
    .example('ctl queue secret add mail-signing --queues mail', 'a new signing secret')
    .example('ctl queue secret list', 'names and queues, never values')
    .example('ctl queue secret remove mail-signing', 'queues that name it are held');
  withFile(
    secret
      .command('add')
      .summary('Add a secret')
      .description(
        'Add a secret with the value from stdin. Without one, generate a signing secret ' +
          '(whsec_...) and show it once.',
      )
      .argument('<name>', 'name of the secret, for secret_ref and secret_refs of a config')
      .option('--queues <glob...>', "Queues that may use it: mail, 'payments.*' (default: all)")
      .example('ctl queue secret add mail-signing --queues mail', 'generate one')
      .example('ctl queue secret add mail-token < token.txt', 'from a file'),
  ).action(async (name: string, flags: SecretAddFlags) => {
    const { addSecret: add } = await import('./secrets.js');
    await add(name, flags, tools);
  });
  withFile(
    secret
      .command('list')
      .summary('List secrets')
      .description('List the names of the secrets and the queues that may use them.')
      .example('ctl queue secret list --secrets-file secrets.yaml', 'as a table')
      .example('ctl queue secret list --json', 'for scripts'),
  )
    .shown(tools)
    .action(async (flags: SecretsFileFlags) => {
      const { listSecrets } = await import('./secrets.js');
      await listSecrets(flags, tools);
    });
  withFile(
    secret
      .command('remove')
      .summary('Remove a secret')
      .description('Remove a secret from the file. Queues whose config names it are held.')
      .argument('<name>', 'name of the secret')
      .example('ctl queue secret remove mail-signing', 'by its name')
      .exitCode(1, 'no such secret, or failure'),
  ).action(async (name: string, flags: SecretsFileFlags) => {
    const { removeSecret } = await import('./secrets.js');
    await removeSecret(name, flags, tools);
  });
}

function withFile(command: CtlCommand): CtlCommand {
  return command
    .option('--secrets-file <file>', 'Secrets file of the server')
    .option('--config <file>', 'Config file of the server, for its secrets_file');
}
