import { Option } from 'commander';
import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import { withDaemon, type DaemonFlags } from './api.js';
import type { InstallFlags } from './install.js';

export function addStatus(daemon: CtlCommand, tools: Tools): void {
  withDaemon(
    daemon
      .command('status')
      .summary('Show whether a daemon is running')
      .description('Show whether a daemon is running, where, and whether it accepts your token.')
      .example('ctl daemon status', 'the daemon of this machine')
      .example('ctl daemon status --url http://10.0.0.5:8765', 'another daemon')
      .exitCode(0, 'it is running')
      .exitCode(1, 'it is not running, or failure'),
  )
    .shown(tools)
    .action(async (flags: DaemonFlags) => {
      const { showStatus } = await import('./status.js');
      await showStatus(flags, tools);
    });
}

export function addInstall(daemon: CtlCommand, tools: Tools): void {
  daemon
    .command('install')
    .summary('Install the daemon as a service')
    .description(
      'Write a user service file with which systemd (Linux) or launchd (macOS) runs the ' +
        'daemon, and print how to start it. Starts nothing by itself.',
    )
    .option('--print', 'Print the file and write nothing')
    .addOption(
      new Option('--for <manager>', 'Service manager (default: that of this machine)').choices([
        'systemd',
        'launchd',
      ]),
    )
    .option('--force', 'Overwrite a different service file')
    .option('--config <file>', 'Config file of the daemon')
    .option('--data <dir>', 'Data directory of the daemon')
    .option('--listen <address>', 'Address the daemon listens on')
    .example('ctl daemon install', 'then run the commands it prints')
    .example('ctl daemon install --print', 'see the file first')
    .example('ctl daemon install --config ~/millrace.yaml', 'with a config file')
    .action(async (flags: InstallFlags) => {
      const { installService } = await import('./install.js');
      await installService(flags, tools);
    });
}
