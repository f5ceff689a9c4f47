import type { CtlCommand } from '../base/command.js';
import { addResources } from '../inspect/resources-commands.js';
import type { Tools } from '../base/tools.js';

export function build(inspect: CtlCommand, tools: Tools): void {
  inspect
    .description(
      'Show the resources that the machine, the agents and the daemon use, now and over time.',
    )
    .example('ctl inspect resources', 'now')
    .example('ctl inspect resources --history', 'over the last day');
  addResources(inspect, tools);
}
