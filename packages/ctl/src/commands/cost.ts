import type { CtlCommand } from '../command.js';
import { withDaemon, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../tools.js';
import { addSavings } from '../savings/savings-command.js';
import { keepFlagsApart } from '../usage/own-flags.js';
import { addSpend } from '../usage/spend-commands.js';

export function build(cost: CtlCommand, tools: Tools): void {
  cost.description('Shows what the agents have spent and what was saved, on one screen.');
  withDaemon(keepFlagsApart(cost))
    .example('ctl cost', 'both at a glance')
    .example('ctl cost usage spend --by repo', 'as `ctl usage spend --by repo`')
    .example('ctl cost --json', 'both documents as the REST API has them')
    .action(async (flags: DaemonFlags) => {
      const { showCost } = await import('../cost/cost.js');
      await showCost(flags, tools);
    });
  const usage = cost
    .command('usage')
    .summary('Show spend or savings alone')
    .description('Shows spend or savings alone, as `ctl usage` does.')
    .example('ctl cost usage spend', 'what was spent')
    .example('ctl cost usage savings', 'what was saved');
  addSpend(usage, tools);
  addSavings(usage, tools);
}
