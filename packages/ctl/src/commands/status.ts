import type { CtlCommand } from '../command.js';
import type { Tools } from '../tools.js';
import type { StatusFlags } from '../status/looking.js';

export function build(status: CtlCommand, tools: Tools): void {
  status
    .description(
      'Shows the database, the queue and the daemon at a glance: whether each runs and where, ' +
        'what waits, runs and is dead in the queues, what the agents do. Servers elsewhere are ' +
        'found as other commands find them: by MILLRACE_DB_URL, MILLRACE_QUEUE_URL, MILLRACE_URL.',
    )
    .option('--data <dir>', 'Look for those that keep their data in this directory')
    .example('ctl status', 'is all well?')
    .example('ctl status --json', 'for scripts')
    .exitCode(0, 'all three run')
    .exitCode(1, 'at least one does not, or failure')
    .action(async (flags: StatusFlags) => {
      const { showStatus } = await import('../status/status.js');
      await showStatus(flags, tools);
    });
}
