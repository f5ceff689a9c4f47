import type { CtlCommand } from '../command.js';
import { withDaemon, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../tools.js';
import { addSavings } from '../savings/savings-command.js';
import { addInsights } from '../usage/insights-commands.js';
import { keepFlagsApart } from '../usage/own-flags.js';
import { addSpend } from '../usage/spend-commands.js';

export function build(usage: CtlCommand, tools: Tools): void {
  usage
    .description(
      'Shows how much of each subscription is used, as the providers themselves report it, and ' +
        'when it resets. Answers younger than 60 seconds come from the cache. What a provider ' +
        'does not tell is unknown, never 0.',
    )
    .option('--refresh', 'Ask the providers again, unless one of them asked to wait');
  withDaemon(keepFlagsApart(usage))
    .example('ctl usage', 'every backend of the tier subscription')
    .example('ctl usage --refresh', 'asked anew')
    .example('ctl usage --json', 'the stable document of version 1')
    .example('ctl usage spend', 'what the agents have spent')
    .exitCode(0, 'every row is known, or truly cannot be')
    .exitCode(1, 'there is no document: no daemon, or failure')
    .exitCode(2, 'a provider failed and the rest is shown, or usage error')
    .action(async (flags: DaemonFlags & { refresh?: boolean }) => {
      const { showUsage } = await import('../usage/usage.js');
      await showUsage(flags, tools);
    });
  addSpend(usage, tools);
  addInsights(usage, tools);
  addSavings(usage, tools);
}
