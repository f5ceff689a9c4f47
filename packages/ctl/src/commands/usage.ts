import type { CtlCommand } from '../base/command.js';
import { withDaemon, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';
import {
  addBlocks,
  addInsights,
  addSavings,
  addSpend,
  addStatusline,
  addValue,
} from '../usage/usage-commands.js';
import { keepFlagsApart } from '../usage/own-flags.js';

export function build(usage: CtlCommand, tools: Tools): void {
  usage
    .description(
      'Show how much of each subscription is used, as reported by the providers, and when ' +
        'it resets. Reports younger than 60 seconds come from the cache. What a provider ' +
        'does not report is unknown, never 0.',
    )
    .option('--refresh', 'Query the providers again, except those that asked to wait');
  withDaemon(keepFlagsApart(usage))
    .example('ctl usage', 'every subscription backend')
    .example('ctl usage --refresh', 'query the providers again')
    .example('ctl usage --json', 'the stable document, version 1')
    .example('ctl usage spend', 'what the agents have spent')
    .exitCode(0, 'every row is known, or cannot be known')
    .exitCode(1, 'no document: no daemon, or failure')
    .exitCode(2, 'a provider failed and the rest is shown, or usage error')
    .shown(tools)
    .action(async (flags: DaemonFlags & { refresh?: boolean }) => {
      const { showUsage } = await import('../usage/usage.js');
      await showUsage(flags, tools);
    });
  addSpend(usage, tools);
  addBlocks(usage, tools);
  addValue(usage, tools);
  addStatusline(usage, tools);
  addInsights(usage, tools);
  addSavings(usage, tools);
}
