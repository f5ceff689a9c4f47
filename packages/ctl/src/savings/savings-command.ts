import type { CtlCommand } from '../command.js';
import { withDaemon } from '../daemon/api.js';
import type { Tools } from '../tools.js';
import type { SavingsFlags } from './savings.js';

/** Hangs `savings` on a group. */
export function addSavings(group: CtlCommand, tools: Tools): void {
  const savings = group
    .command('savings')
    .summary('Show the tokens that were kept out of models')
    .description(
      'Shows how many tokens of output and context were kept out of models, and what the local ' +
        'model did in place of a cloud model. The two are never added up. Calibrating sends ' +
        'retained samples to the token counter of the provider, with the key in ' +
        'ANTHROPIC_API_KEY, and is done on the machine of the daemon.',
    )
    .option('--since <when>', 'Count from here on: 24h, 7d, 2w, a date, or an RFC 3339 time')
    .option('--benchmark', 'Set what there would have been beside what there was')
    .option('--audit', 'Show the newest pairs of raw and kept text')
    .option('--calibrate', 'Measure how many bytes make a token')
    .option('--calibrate-max <count>', 'Count at most so many samples (default: 50)');
  withDaemon(savings)
    .example(savings.path, 'since the beginning')
    .example(`${savings.path} --since 7d`, 'with the trend of a week')
    .example(`${savings.path} --benchmark --since 2026-01-01`, 'without and with')
    .example(`${savings.path} --json`, 'what the REST API answers')
    .exitCode(1, 'no daemon, savings are off, not calibrated, or failure')
    .action(async (_flags: object, command: CtlCommand) => {
      const { showSavings } = await import('./savings.js');
      // The flags of the group count too: `ctl usage --url ... savings`.
      await showSavings(command.optsWithGlobals<SavingsFlags>(), tools);
    });
}
