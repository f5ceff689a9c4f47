import { Option } from 'commander';
import type { CtlCommand } from '../base/command.js';
import { withDaemon } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';
import { whichAgent } from './view-commands.js';
import type {
  CommitFlags,
  DiffFlags,
  MergeFlags,
  OpenPrFlags,
  PushFlags,
  RebaseFlags,
} from './workbench.js';

const baseOption = '--base <revision>';
const forceWorking = 'Go on although the agent is working';

export function addDiff(agent: CtlCommand, tools: Tools): void {
  withDaemon(
    agent
      .command('diff')
      .summary('Show what an agent changed')
      .description(
        'Show the changes of an agent since its branch left the base: commits, uncommitted ' +
          'changes and new files, as a unified diff of at most 5,000 lines.',
      )
      .argument('<agent>', whichAgent)
      .option(baseOption, 'Compare with this branch or commit (default: the base of its worktree)')
      .option('--stat', 'List the files and the number of changed lines only')
      .example('ctl agent diff docs', 'review it')
      .example('ctl agent diff docs --stat', 'which files')
      .exitCode(1, 'no such agent, it has no git workspace, or failure'),
  ).action(async (words: string, flags: DiffFlags) => {
    const { showDiff } = await import('./workbench.js');
    await showDiff(words, flags, tools);
  });
}

export function addCommit(agent: CtlCommand, tools: Tools): void {
  withDaemon(
    agent
      .command('commit')
      .summary('Commit the changes of an agent')
      .description(
        'Commit every change in the workspace of an agent, new files included. Refused while ' +
          'the agent is working, unless forced.',
      )
      .argument('<agent>', whichAgent)
      .option('-m, --message <text>', 'Commit message (default: the name of the agent)')
      .option('--force', forceWorking)
      .example('ctl agent commit docs -m "Describe retries"', 'with a message')
      .exitCode(1, 'no such agent, nothing to commit, or failure'),
  ).action(async (words: string, flags: CommitFlags) => {
    const { commitAgent } = await import('./workbench.js');
    await commitAgent(words, flags, tools);
  });
}

export function addPush(agent: CtlCommand, tools: Tools): void {
  withDaemon(
    agent
      .command('push')
      .summary('Push the branch of an agent')
      .description('Push the commits on the branch of an agent to a remote.')
      .argument('<agent>', whichAgent)
      .option('--remote <name>', 'Remote (default: the one its branch tracks, or origin)')
      .option('--force', 'Replace the remote branch, unless somebody else has moved it')
      .example('ctl agent push docs', 'to origin')
      .example('ctl agent push docs --force', 'after a rebase')
      .exitCode(1, 'no such agent, the remote refuses, or failure'),
  ).action(async (words: string, flags: PushFlags) => {
    const { pushAgent } = await import('./workbench.js');
    await pushAgent(words, flags, tools);
  });
}

export function addOpenPr(agent: CtlCommand, tools: Tools): void {
  withDaemon(
    agent
      .command('open-pr')
      .summary('Open a pull request for an agent')
      .description(
        'Push the branch of an agent and open a pull request with the GitHub command line gh ' +
          "on the daemon's machine.",
      )
      .argument('<agent>', whichAgent)
      .option('--title <text>', 'Title (default: the name of the agent)')
      .option('--body <text>', 'Description')
      .option('--draft', 'Open it as a draft')
      .option(baseOption, 'Branch to merge into (default: the base of its worktree)')
      .example('ctl agent open-pr docs --title "Describe retries" --draft', 'as a draft')
      .exitCode(1, 'no such agent, gh is missing or refuses, or failure'),
  ).action(async (words: string, flags: OpenPrFlags) => {
    const { openPr } = await import('./workbench.js');
    await openPr(words, flags, tools);
  });
}

export function addMerge(agent: CtlCommand, tools: Tools): void {
  withDaemon(
    agent
      .command('merge')
      .summary('Merge the branch of an agent into its base')
      .description(
        'Take the commits of an agent into the base branch of the same clone. Nothing is ' +
          'changed when they conflict, when there are uncommitted changes, or while the agent ' +
          'is working, unless forced.',
      )
      .argument('<agent>', whichAgent)
      .addOption(
        new Option('--strategy <strategy>', 'Merge commit, one commit, or commits replayed')
          .choices(['merge', 'squash', 'rebase'])
          .default('merge'),
      )
      .option('-m, --message <text>', 'Message of the merge or squash commit')
      .option(baseOption, 'Branch to merge into (default: the base of its worktree)')
      .option('--force', forceWorking)
      .example('ctl agent merge docs', 'with a merge commit')
      .example('ctl agent merge docs --strategy squash', 'as one commit')
      .exitCode(1, 'no such agent, a conflict, uncommitted changes, or failure'),
  ).action(async (words: string, flags: MergeFlags) => {
    const { mergeAgent } = await import('./workbench.js');
    await mergeAgent(words, flags, tools);
  });
}

export function addRebase(agent: CtlCommand, tools: Tools): void {
  withDaemon(
    agent
      .command('rebase')
      .summary('Rebase the branch of an agent onto its base')
      .description(
        'Replay the commits of an agent on the tip of its base. Nothing is changed when one of ' +
          'them conflicts.',
      )
      .argument('<agent>', whichAgent)
      .option(baseOption, 'Branch or commit to rebase onto (default: the base of its worktree)')
      .option('--force', forceWorking)
      .example('ctl agent rebase docs', 'onto the base of its worktree')
      .exitCode(1, 'no such agent, a conflict, uncommitted changes, or failure'),
  ).action(async (words: string, flags: RebaseFlags) => {
    const { rebaseAgent } = await import('./workbench.js');
    await rebaseAgent(words, flags, tools);
  });
}
