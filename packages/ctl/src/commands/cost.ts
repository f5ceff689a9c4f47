import type { CtlCommand } from '../base/command.js';
import { withDaemon, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';
import { addSavings, addSpend } from '../usage/usage-commands.js';
import { keepFlagsApart } from '../usage/own-flags.js';

export function build(cost: CtlCommand, tools: Tools): void {
  cost.description('Show spend and savings of the agents on one screen.');
  withDaemon(keepFlagsApart(cost))
    .example('ctl cost', 'both at a glance')
    .example('ctl cost usage spend --by repo', 'the same as `ctl usage spend --by repo`')
    .example('ctl cost --json', 'both documents of the REST API')
    .shown(tools)
    .action(async (flags: DaemonFlags) => {
      const { showCost } = await import('../cost/cost.js');
      await showCost(flags, tools);
    });
  const usage = cost
    .command('usage')
    .summary('Show spend or savings alone')
    .description('Show spend or savings alone, like `ctl usage`.')
    .example('ctl cost usage spend', 'what was spent')
    .example('ctl cost usage savings', 'what was saved');
  addSpend(usage, tools);
  addSavings(usage, tools);
}
