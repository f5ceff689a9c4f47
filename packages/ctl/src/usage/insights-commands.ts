import type { CtlCommand } from '../base/command.js';
import { withDaemon, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';

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
