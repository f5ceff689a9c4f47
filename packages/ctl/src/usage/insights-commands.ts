import type { CtlCommand } from '../command.js';
import { withDaemon, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../tools.js';

export function addInsights(group: CtlCommand, tools: Tools): void {
  const command = group
    .command('insights')
    .summary('Show patterns in what the agents did')
    .description(
      'Shows what the history of the agents tells: how long sessions take, the busiest hours, ' +
        'how often they fail, which files are edited together and what could run in parallel.',
    )
    .option('--since <when>', 'Sessions from here on: 24h, 7d, 2w, a date, or an RFC 3339 time');
  withDaemon(command)
    .example(`${group.path} insights`, 'of all time')
    .example(`${group.path} insights --since 30d`, 'sessions of the last 30 days')
    .example(`${group.path} insights --json`, 'as the REST API has it')
    .action(async (_: unknown, self: CtlCommand) => {
      const { showInsights } = await import('./insights.js');
      await showInsights(self.optsWithGlobals<DaemonFlags & { since?: string }>(), tools);
    });
}
