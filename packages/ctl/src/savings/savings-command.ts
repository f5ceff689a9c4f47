import type { CtlCommand } from '../base/command.js';
import { withDaemon } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';
import type { SavingsFlags } from './savings.js';

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
      const { showSavings } = await import('./savings.js');
      // Flags of the group count too: `ctl usage --url ... savings`.
      await showSavings(command.optsWithGlobals<SavingsFlags>(), tools);
    });
}
