import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import type { StatusFlags } from '../status/read-overview.js';

export function build(status: CtlCommand, tools: Tools): void {
  status
    .description(
      'Show the status of the database, the queue and the daemon: whether and where each ' +
        'is running, how many tasks are pending, running and dead, and what the agents do. ' +
        'Servers on other machines are found by MILLRACE_DB_URL, MILLRACE_QUEUE_URL and ' +
        'MILLRACE_URL.',
    )
    .option('--data <dir>', 'Data directory of the servers on this machine')
    .example('ctl status', 'is everything running?')
    .example('ctl status --json', 'for scripts')
    .exitCode(0, 'all three are running')
    .exitCode(1, 'at least one is not running, or failure')
    .shown(tools)
    .action(async (flags: StatusFlags) => {
      const { showStatus } = await import('../status/status.js');
      await showStatus(flags, tools);
    });
}
