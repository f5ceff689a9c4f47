import { Argument, Option } from 'commander';
import type { CtlCommand } from '../base/command.js';
import type { ServiceFlags, ServiceName } from '../service/service.js';
import type { Tools } from '../base/tools.js';

export function build(service: CtlCommand, tools: Tools): void {
  service
    .description(
      'Run Millrace as a service of your user with systemd (Linux) or launchd (macOS). For a ' +
        'service of the whole system see packaging/systemd in the repository.',
    )
    .example('ctl service install', 'start everything now and with every login')
    .example('ctl service status', 'is it running?')
    .example('ctl service uninstall', 'stop it and remove the service');
  withPart(service.command('install'))
    .summary('Install and start a service')
    .description(
      'Write a service file, and start the service now and with every login. With --no-start, ' +
        'print the commands that start it.',
    )
    .option('--data <dir>', 'Data directory of the servers')
    .option('--print', 'Print the file and write nothing')
    .option('--force', 'Overwrite a different service file')
    .option('--no-start', 'Write the file and start nothing')
    .option('--dry-run', 'Show what would be written and run, and do nothing')
    .example('ctl service install', 'everything, as `ctl up` runs it')
    .example('ctl service install queue --print', 'see the file of the queue alone')
    .action(async (part: ServiceName | undefined, flags: ServiceFlags) => {
      const { install } = await import('../service/service.js');
      await install(part ?? 'up', flags, tools);
    });
  withPart(service.command('uninstall'))
    .summary('Stop and remove a service')
    .description('Stop the service and remove its file. Data is not touched.')
    .example('ctl service uninstall', 'the service of everything')
    .action(async (part: ServiceName | undefined, flags: ServiceFlags) => {
      const { uninstall } = await import('../service/service.js');
      await uninstall(part ?? 'up', flags, tools);
    });
  withPart(service.command('status'))
    .summary('Show whether a service is installed and running')
    .description('Show whether a service is installed and running.')
    .example('ctl service status', 'the service of everything')
    .example('ctl service status daemon --json', 'for scripts')
    .exitCode(0, 'it is running')
    .exitCode(1, 'it is not running or not installed, or failure')
    .shown(tools)
    .action(async (part: ServiceName | undefined, flags: ServiceFlags) => {
      const { showService } = await import('../service/service.js');
      await showService(part ?? 'up', flags, tools);
    });
}

function withPart(command: CtlCommand): CtlCommand {
  return command
    .addArgument(
      new Argument('[part]', 'one server; default: up, everything').choices([
        'up',
        'db',
        'queue',
        'daemon',
      ]),
    )
    .addOption(
      new Option('--for <manager>', 'Service manager (default: that of this machine)').choices([
        'systemd',
        'launchd',
      ]),
    );
}
