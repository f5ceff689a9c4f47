import { Option } from 'commander';
import type { CtlCommand } from '../base/command.js';
import { withDaemon, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';
import { spendTables, type SpendBy } from './spend-tables.js';

export function addSpend(group: CtlCommand, tools: Tools): void {
  const command = group
    .command('spend')
    .summary('Show what the agents have spent')
    .description(
      "Show dollars and tokens from the agents' own transcripts: today, this week and in " +
        'total, by agent, repository and model. Cache tokens are shown separately.',
    )
    .addOption(
      new Option('--by <what>', 'Show the whole table of one kind').choices(
        Object.keys(spendTables),
      ),
    );
  withDaemon(command)
    .example(`${group.path} spend`, 'totals and the largest of each kind')
    .example(`${group.path} spend --by day`, 'a row for each day')
    .example(`${group.path} spend --by repo -o name`, 'repositories only')
    .example(`${group.path} spend --json`, 'the response of the REST API')
    .shown(tools)
    .action(async (_: unknown, self: CtlCommand) => {
      const { showSpend } = await import('./spend.js');
      // Flags of the group count too: `ctl usage --url ... spend`.
      await showSpend(self.optsWithGlobals<DaemonFlags & { by?: SpendBy }>(), tools);
    });
}
