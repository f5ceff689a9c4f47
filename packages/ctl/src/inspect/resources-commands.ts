import type { CtlCommand } from '../command.js';
import { withDaemon } from '../daemon/api.js';
import type { Tools } from '../tools.js';
import type { ResourcesFlags } from './resources.js';

export function addResources(inspect: CtlCommand, tools: Tools): void {
  const command = inspect
    .command('resources')
    .summary('Show what the machine, the agents and the daemon use')
    .description(
      'Shows CPU, memory and load of the machine, CPU, memory and context of each live agent ' +
        'with all its child processes, and what the daemon itself uses. CPU of the machine is a ' +
        'share of all cores, that of an agent of one core. What is not known is shown as -.',
    )
    .option('--watch', 'Redraw every 3 seconds until Ctrl-C')
    .option('--history', 'Show how it was, as recorded every 15 seconds')
    .option('--since <when>', 'History from here on: 6h, 7d, a date or an RFC 3339 time', '24h');
  withDaemon(command)
    .example('ctl inspect resources', 'now')
    .example('ctl inspect resources --watch', 'now, and now, and now')
    .example('ctl inspect resources --history --since 7d', 'the last 7 days as small charts')
    .example('ctl inspect resources --json', 'as the REST API has it')
    .action(async (flags: ResourcesFlags) => {
      const { showResources } = await import('./resources.js');
      await showResources(flags, tools);
    });
}
