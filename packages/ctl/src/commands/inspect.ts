import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import { withDaemon } from '../daemon/api.js';
import type { ResourcesFlags } from '../inspect/resources.js';

export function build(inspect: CtlCommand, tools: Tools): void {
  inspect
    .description(
      'Show the resources that the machine, the agents and the daemon use, now and over time.',
    )
    .example('ctl inspect resources', 'now')
    .example('ctl inspect resources --history', 'over the last day');
  addResources(inspect, tools);
}

export function addResources(inspect: CtlCommand, tools: Tools): void {
  const command = inspect
    .command('resources')
    .summary('Show CPU, memory and load of the machine, agents and daemon')
    .description(
      'Show CPU, memory and load of the machine, CPU, memory and context of each live ' +
        'agent with all its child processes, and the usage of the daemon itself. CPU of the ' +
        'machine is a share of all cores, CPU of an agent a share of one core. Unknown ' +
        'values are shown as -.',
    )
    .option('--watch', 'Redraw every 3 seconds until Ctrl-C')
    .option('--history', 'Show the history, recorded every 15 seconds')
    .option('--since <when>', 'Start of the history: 6h, 7d, a date or an RFC 3339 time', '24h');
  withDaemon(command)
    .example('ctl inspect resources', 'now')
    .example('ctl inspect resources --watch', 'redraw every 3 seconds')
    .example('ctl inspect resources --history --since 7d', 'the last 7 days as small charts')
    .example('ctl inspect resources --json', 'the response of the REST API')
    .action(async (flags: ResourcesFlags) => {
      const { showResources } = await import('../inspect/resources.js');
      await showResources(flags, tools);
    });
}
