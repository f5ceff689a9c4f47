import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';

export function build(check: CtlCommand, tools: Tools): void {
  check
    .description(
      'Run a build, a test run or a linter and print a short form of its output: failures ' +
        'and the summary, with a count of the omitted lines. The whole output of both ' +
        'streams, in order, goes to a log that the last line names. The saving is recorded ' +
        'in the savings ledger. The command gets your stdin and signals, and `ctl check` exits with ' +
        'its exit code. If the command fails without output, it prints the command and how ' +
        'it ended.',
    )
    .usage('[options] -- <command...>')
    .argument('<command...>', 'the command, after --')
    .option(
      '--data <dir>',
      'Data directory of the logs and the ledger (default: that of the daemon)',
    )
    .example('ctl check -- npm test', 'only failures and the summary')
    .example('ctl check -- make -j4', 'any command, with its options')
    .example('ctl check --json -- npm test', 'the short form and the figures as JSON')
    .section('Exit codes are those of the command, and as in shells:', [
      ['126', 'the command is not executable'],
      ['127', 'there is no such command'],
      ['128 + n', 'signal n ended the command'],
    ])
    .exitCode(0, 'the command succeeded')
    .exitCode(1, 'exit code of the command, or failure')
    .exitCode(2, 'exit code of the command, or usage error')
    .action(async (command: string[], { data }: { data?: string }) => {
      const { runShortened } = await import('../check/shortened.js');
      const { checkRules } = await import('../check/rules.js');
      const run = { feature: 'check', command, rules: checkRules, showsProgress: true } as const;
      await runShortened({ ...run, data }, tools);
    });
}
