import { Option } from 'commander';
import type { CtlCommand } from '../command.js';
import type { Tools } from '../tools.js';
import { withDaemon, type DaemonFlags } from './api.js';
import type { InstallFlags } from './install.js';

export function addStatus(daemon: CtlCommand, tools: Tools): void {
  withDaemon(
    daemon
      .command('status')
      .summary('Tell whether a daemon runs')
      .description('Tells whether a daemon runs, where, and whether it lets you in.')
      .example('ctl daemon status', 'the one of this machine')
      .example('ctl daemon status --url http://10.0.0.5:8765', 'another one')
      .exitCode(0, 'it runs')
      .exitCode(1, 'it does not, or failure'),
  ).action(async (flags: DaemonFlags) => {
    const { showStatus } = await import('./status.js');
    await showStatus(flags, tools);
  });
}

export function addInstall(daemon: CtlCommand, tools: Tools): void {
  daemon
    .command('install')
    .summary('Start the daemon with every login')
    .description(
      'Writes a service file for you alone, by which systemd (Linux) or launchd (macOS) runs the ' +
        'daemon, and says how to start it. Starts nothing by itself.',
    )
    .option('--print', 'Show the file and write nothing')
    .addOption(
      new Option('--for <manager>', 'Service manager (default: that of this machine)').choices([
        'systemd',
        'launchd',
      ]),
    )
    .option('--force', 'Overwrite a service file that says something else')
    .option('--config <file>', 'Settings for the daemon')
    .option('--data <dir>', 'Data directory for the daemon')
    .option('--listen <address>', 'Where the daemon is to listen')
    .example('ctl daemon install', 'then type what it says')
    .example('ctl daemon install --print', 'look first')
    .example('ctl daemon install --config ~/millrace.yaml', 'with settings from a file')
    .action(async (flags: InstallFlags) => {
      const { installService } = await import('./install.js');
      await installService(flags, tools);
    });
}
