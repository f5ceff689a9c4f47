import type { CtlCommand } from '../base/command.js';
import type { CodeCommand } from '../base/declared.js';
import type { TopCommand } from '../base/groups.js';
import { shapeOf, type CommandShape } from '../base/shape.js';
import type { Tools } from '../base/tools.js';

/** What every command of `ctl git` has. */
const git = (name: string) =>
  ({
    arguments: [['[arguments...]', 'arguments and options of git']],
    passesOptionsOn: true,
    exitCodes: {
      0: 'git succeeded',
      1: 'exit code of git, or failure',
      2: 'exit code of git, or usage error',
    },
    run: async () => (await import('../git/git.js')).gitRunner(name),
  }) as const satisfies Partial<CodeCommand>;

/** Commands that run other programs with short output, and those on the command line itself. */
export const top: Readonly<Record<string, TopCommand>> = {
  check: {
    description:
      'Run a build, a test run or a linter and print a short form of its output: failures ' +
      'and the summary, with a count of the omitted lines. The whole output of both ' +
      'streams, in order, goes to a log that the last line names. The saving is recorded ' +
      'in the savings ledger. The command gets your stdin and signals, and `ctl check` exits with ' +
      'its exit code. If the command fails without output, it prints the command and how ' +
      'it ended.',
    usage: '[options] -- <command...>',
    arguments: [['<command...>', 'the command, after --']],
    options: [
      ['--data <dir>', 'Data directory of the logs and the ledger (default: that of the daemon)'],
    ],
    examples: [
      ['ctl check -- npm test', 'only failures and the summary'],
      ['ctl check -- make -j4', 'any command, with its options'],
      ['ctl check --json -- npm test', 'the short form and the figures as JSON'],
    ],
    section: [
      'Exit codes are those of the command, and as in shells:',
      [
        ['126', 'the command is not executable'],
        ['127', 'there is no such command'],
        ['128 + n', 'signal n ended the command'],
      ],
    ],
    exitCodes: {
      0: 'the command succeeded',
      1: 'exit code of the command, or failure',
      2: 'exit code of the command, or usage error',
    },
    run: async () => (await import('../check/shortened.js')).runCheck,
  },
  git: {
    description:
      'Run git and print a short form of its output: what was committed, pushed or merged, ' +
      'and every error. The whole output goes to a log; the saving is recorded in the ' +
      'savings ledger. Options, arguments and exit codes are those of git.',
    examples: [
      ['ctl git commit -am "Grease the wheel"', 'git commit'],
      ['ctl git push', 'git push'],
      ['ctl git sync', 'fetch, then rebase or merge'],
    ],
    commands: {
      commit: {
        ...git('commit'),
        summary: 'Commit with short output',
        description: 'Run `git commit` with these arguments.',
        examples: [
          ['ctl git commit -m "Grease the wheel"', 'what is staged'],
          ['ctl git commit --amend --no-edit', 'any option of git commit'],
        ],
      },
      push: {
        ...git('push'),
        summary: 'Push with short output',
        description: 'Run `git push` with these arguments.',
        examples: [
          ['ctl git push', 'the current branch'],
          ['ctl git push --force-with-lease origin mill', 'any option of git push'],
        ],
      },
      sync: {
        ...git('pull'),
        summary: 'Pull with short output',
        description:
          'Run `git pull` with these arguments: fetch, then rebase or merge as the git ' +
          'settings pull.rebase and pull.ff say. If the branches have diverged and neither is ' +
          'set, git refuses; add --rebase or --no-rebase. Pushes nothing.',
        examples: [
          ['ctl git sync', 'as configured'],
          ['ctl git sync --rebase', 'your commits on top'],
        ],
      },
    },
  },
  completion: {
    description:
      'Print a script that makes your shell complete commands, options and their values.',
    arguments: [['<shell>', 'Your shell', ['bash', 'zsh', 'fish']]],
    examples: [
      ['source <(ctl completion bash)', 'in ~/.bashrc'],
      ['source <(ctl completion zsh)', 'in ~/.zshrc, after compinit'],
      ['ctl completion fish | source', 'in ~/.config/fish/config.fish'],
    ],
    run: async () => printScript,
  },
  help: {
    description:
      'Show what a command does, its options and examples. Without a name, show the overview.',
    arguments: [['[command...]', 'The command, such as `doctor`']],
    examples: [
      ['ctl help', 'every command in one line each'],
      ['ctl help doctor', 'the same as `ctl doctor --help`'],
      ['ctl help --json', 'all commands and options as data'],
    ],
    run: async () => showHelp,
  },
};

const scripts: Readonly<Record<string, () => Promise<(root: CommandShape) => string>>> = {
  bash: async () => (await import('../completion/bash.js')).bashScript,
  zsh: async () => (await import('../completion/zsh.js')).zshScript,
  fish: async () => (await import('../completion/fish.js')).fishScript,
};

async function printScript(shell: string, _flags: object, { groups, terminal }: Tools) {
  const [script] = await Promise.all([scripts[shell]!(), groups.fillAll()]);
  const text = script(shapeOf(groups.root));
  terminal.showLine({ shell, script: text }, text);
}

async function showHelp(names: readonly string[], _flags: object, { groups, terminal }: Tools) {
  if (terminal.json && names.length === 0) await groups.fillAll();
  else if (names[0] !== undefined) await groups.fill(names[0]);
  let found: CtlCommand = groups.root;
  for (const name of names) found = found.subcommand(name) ?? found.complainAbout(name);
  found.outputHelp();
}
