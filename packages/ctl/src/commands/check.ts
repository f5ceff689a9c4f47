import type { CtlCommand } from '../command.js';
import type { Tools } from '../tools.js';

export function build(check: CtlCommand, tools: Tools): void {
  check
    .description(
      'Runs a build, a test run or a linter and prints the short form of its output: failures ' +
        'and the summary, with the rest counted. The whole output of both streams, in order, is ' +
        'kept in a log that the last line names. What was left out is written to the savings ' +
        'ledger. The command gets your stdin and signals, and its exit code is that of ctl. A ' +
        'command that fails without a word is named, with how it ended.',
    )
    .usage('[options] -- <command...>')
    .argument('<command...>', 'the command, after --')
    .option('--data <dir>', 'Where the log and the ledger are kept (default: that of the daemon)')
    .example('ctl check -- npm test', 'only what matters')
    .example('ctl check -- make -j4', 'any command, with its options')
    .example('ctl check --json -- npm test', 'the short form and the figures, for scripts')
    .section('Exit codes are those of the command, and as in shells:', [
      ['126', 'the command may not be run'],
      ['127', 'there is no such command'],
      ['128 + n', 'signal n ended the command'],
    ])
    .exitCode(0, 'the command ended well')
    .exitCode(1, 'what the command says, or failure')
    .exitCode(2, 'what the command says, or usage error')
    .action(async (command: string[], { data }: { data?: string }) => {
      const { runShortened } = await import('../check/shortened.js');
      const { checkRules } = await import('../check/rules.js');
      const run = { feature: 'check', command, rules: checkRules, showsProgress: true } as const;
      await runShortened({ ...run, data }, tools);
    });
}
