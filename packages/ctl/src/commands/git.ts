import type { CtlCommand } from '../command.js';
import { addGitCommand } from '../git/git-command.js';
import type { Tools } from '../tools.js';

export function build(git: CtlCommand, tools: Tools): void {
  git
    .description(
      'Runs git and prints the short form of what it says: what was committed, pushed or merged, ' +
        'and whatever went wrong. The whole output is kept in a log; what was left out is written ' +
        'to the savings ledger. Options and arguments are those of git, and so is the exit code.',
    )
    .example('ctl git commit -am "Grease the wheel"', 'as git commit')
    .example('ctl git push', 'as git push')
    .example('ctl git sync', 'fetch, then rebase or merge');
  addGitCommand(git, tools, {
    name: 'commit',
    runs: 'commit',
    summary: 'Commit, and say it in short',
    description: 'Runs `git commit` with the arguments given.',
    examples: [
      ['ctl git commit -m "Grease the wheel"', 'what is staged'],
      ['ctl git commit --amend --no-edit', 'any option of git commit'],
    ],
  });
  addGitCommand(git, tools, {
    name: 'push',
    runs: 'push',
    summary: 'Push, and say it in short',
    description: 'Runs `git push` with the arguments given.',
    examples: [
      ['ctl git push', 'the branch you are on'],
      ['ctl git push --force-with-lease origin mill', 'any option of git push'],
    ],
  });
  addGitCommand(git, tools, {
    name: 'sync',
    runs: 'pull',
    summary: 'Fetch and integrate, and say it in short',
    description:
      'Runs `git pull` with the arguments given: fetches, and then rebases or merges as the ' +
      'settings pull.rebase and pull.ff of git say. Where the branches have diverged and neither ' +
      'is set, git refuses; say --rebase or --no-rebase then. Pushes nothing.',
    examples: [
      ['ctl git sync', 'as configured'],
      ['ctl git sync --rebase', 'your commits on top'],
    ],
  });
}
