import type { CtlCommand } from '../base/command.js';
import { addGitCommand } from '../git/git-command.js';
import type { Tools } from '../base/tools.js';

export function build(git: CtlCommand, tools: Tools): void {
  git
    .description(
      'Run git and print a short form of its output: what was committed, pushed or merged, ' +
        'and every error. The whole output goes to a log; the saving is recorded in the ' +
        'savings ledger. Options, arguments and exit codes are those of git.',
    )
    .example('ctl git commit -am "Grease the wheel"', 'git commit')
    .example('ctl git push', 'git push')
    .example('ctl git sync', 'fetch, then rebase or merge');
  addGitCommand(git, tools, {
    name: 'commit',
    runs: 'commit',
    summary: 'Commit with short output',
    description: 'Run `git commit` with these arguments.',
    examples: [
      ['ctl git commit -m "Grease the wheel"', 'what is staged'],
      ['ctl git commit --amend --no-edit', 'any option of git commit'],
    ],
  });
  addGitCommand(git, tools, {
    name: 'push',
    runs: 'push',
    summary: 'Push with short output',
    description: 'Run `git push` with these arguments.',
    examples: [
      ['ctl git push', 'the current branch'],
      ['ctl git push --force-with-lease origin mill', 'any option of git push'],
    ],
  });
  addGitCommand(git, tools, {
    name: 'sync',
    runs: 'pull',
    summary: 'Pull with short output',
    description:
      'Run `git pull` with these arguments: fetch, then rebase or merge as the git ' +
      'settings pull.rebase and pull.ff say. If the branches have diverged and neither is ' +
      'set, git refuses; add --rebase or --no-rebase. Pushes nothing.',
    examples: [
      ['ctl git sync', 'as configured'],
      ['ctl git sync --rebase', 'your commits on top'],
    ],
  });
}
