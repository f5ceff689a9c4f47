import { spendTables, type SpendBy } from './spend-tables.js';
import { Option } from 'commander';
import type { CtlCommand } from '../base/command.js';
import { withDaemon, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';
import type { BlocksFlags } from './blocks.js';
import type { SavingsFlags } from '../savings/savings.js';

export function addSpend(group: CtlCommand, tools: Tools): void {
  const command = group
    .command('spend')
    .summary('Show what the agents have spent')
    .description(
      "Show dollars and tokens from the agents' own transcripts: today, this week and in " +
        'total, by agent, repository and model, at the list price of each model with its cache.',
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
    .example(`${group.path} spend --by model -o csv`, 'for a spreadsheet')
    .example(`${group.path} spend --json`, 'the response of the REST API')
    .shown(tools)
    .action(async (_: unknown, self: CtlCommand) => {
      const { showSpend } = await import('./spend.js');
      // Flags of the group count too: `ctl usage --url ... spend`.
      await showSpend(self.optsWithGlobals<DaemonFlags & { by?: SpendBy }>(), tools);
    });
}

export function addBlocks(group: CtlCommand, tools: Tools): void {
  const command = group
    .command('blocks')
    .summary('Show five-hour blocks')
    .description(
      'Show tokens, price and rate of one backend in blocks of five hours, which begin with the ' +
        'full hour of their first message, and what the present one will come to.',
    )
    .option('--backend <id>', 'Whose transcripts count (default: claude)')
    .option('--active', 'Show the present block only');
  withDaemon(command)
    .example(`${group.path} blocks`, 'all blocks of claude')
    .example(`${group.path} blocks --active --json`, 'the present block')
    .example(`${group.path} blocks --backend codex -o csv`, 'for a spreadsheet')
    .shown(tools)
    .action(async (_: unknown, self: CtlCommand) => {
      const { showBlocks } = await import('./blocks.js');
      await showBlocks(self.optsWithGlobals<BlocksFlags>(), tools);
    });
}

export function addValue(group: CtlCommand, tools: Tools): void {
  const command = group
    .command('value')
    .summary('Show what the agents brought')
    .description(
      'Show dollars per merged branch, per finished task and per backend, and how often the ' +
        'first try succeeded.',
    );
  withDaemon(command)
    .example(`${group.path} value`, 'a row for each backend')
    .example(`${group.path} value --json`, 'the response of the REST API')
    .shown(tools)
    .action(async (_: unknown, self: CtlCommand) => {
      const { showValue } = await import('./blocks.js');
      await showValue(self.optsWithGlobals<DaemonFlags>(), tools);
    });
}

export function addStatusline(group: CtlCommand, tools: Tools): void {
  group
    .command('statusline')
    .summary('Print one line for the status line of an agent')
    .description(
      'Print what was spent today and in the present five-hour block, in one line. It needs no ' +
        'daemon. Facts that claude writes to the standard input of its status line are shown too.',
    )
    .addOption(new Option('--refresh', 'Only bring the figures up to date').hideHelp())
    .example(`${group.path} statusline`, 'the command of `statusLine` in the settings of claude')
    .action(async ({ refresh }: { refresh?: boolean }) => {
      const { refreshFigures } = await import('./statusline-figures.js');
      const { lineOf } = await import('./statusline.js');
      const figures = await refreshFigures(tools.terminal.env);
      if (!refresh) tools.terminal.out.write(`${lineOf(figures, {}, figures.at)}\n`);
    });
}

export function addInsights(group: CtlCommand, tools: Tools): void {
  const command = group
    .command('insights')
    .summary('Show patterns in the sessions of agents')
    .description(
      'Show patterns in the history of the agents: session durations, the busiest hours, ' +
        'error rates, files edited together and sessions that could run in parallel.',
    )
    .option('--since <when>', 'Start of the report: 24h, 7d, 2w, a date, or an RFC 3339 time');
  withDaemon(command)
    .example(`${group.path} insights`, 'of all time')
    .example(`${group.path} insights --since 30d`, 'sessions of the last 30 days')
    .example(`${group.path} insights --json`, 'the response of the REST API')
    .shown(tools)
    .action(async (_: unknown, self: CtlCommand) => {
      const { showInsights } = await import('./insights.js');
      await showInsights(self.optsWithGlobals<DaemonFlags & { since?: string }>(), tools);
    });
}

/** Adds `savings` to a group. */
export function addSavings(group: CtlCommand, tools: Tools): void {
  const savings = group
    .command('savings')
    .summary('Show the tokens saved')
    .description(
      'Show how many tokens of output and context were saved, and how much work the local ' +
        'model did instead of a cloud model. The two are never added up. --calibrate sends ' +
        'stored samples to the token counter of the provider, with the key in ' +
        'ANTHROPIC_API_KEY, and works only on the machine of the daemon.',
    )
    .option('--since <when>', 'Start of the report: 24h, 7d, 2w, a date, or an RFC 3339 time')
    .option('--benchmark', 'Compare usage with and without savings')
    .option('--audit', 'Show the newest samples of raw and shortened text')
    .option('--calibrate', 'Measure the bytes per token')
    .option('--calibrate-max <count>', 'Maximum number of samples to count (default: 50)');
  withDaemon(savings)
    .example(savings.path, 'all time')
    .example(`${savings.path} --since 7d`, 'with the trend of a week')
    .example(`${savings.path} --benchmark --since 2026-01-01`, 'without and with')
    .example(`${savings.path} --json`, 'the response of the REST API')
    .shown(tools)
    .exitCode(1, 'no daemon, savings are off, not calibrated, or failure')
    .action(async (_flags: object, command: CtlCommand) => {
      const { showSavings } = await import('../savings/savings.js');
      // Flags of the group count too: `ctl usage --url ... savings`.
      await showSavings(command.optsWithGlobals<SavingsFlags>(), tools);
    });
}
