import { Argument } from 'commander';
import type { CtlCommand } from '../base/command.js';
import { withDaemon, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';
import { whichAgent } from './view-commands.js';

export function addSend(agent: CtlCommand, tools: Tools): void {
  withDaemon(
    agent
      .command('send')
      .summary('Send text to an agent')
      .description(
        'Type text at the prompt of an agent and wait until its turn has started: the ' +
          'answer to its question, or more work. A headless run accepts no input.',
      )
      .argument('<agent>', whichAgent)
      .argument('[text]', 'the text to send, in quotes; - reads it from stdin')
      .example('ctl agent send docs "Yes, go on."', 'answer its question')
      .example('ctl agent send docs - < more.md', 'a longer text')
      .exitCode(1, 'no such agent, it takes no input, or failure'),
  ).action(async (words: string, text: string | undefined, flags: DaemonFlags) => {
    const { sendToAgent } = await import('./acting.js');
    await sendToAgent(words, text, flags, tools);
  });
}

export function addStop(agent: CtlCommand, tools: Tools): void {
  withDaemon(
    agent
      .command('stop')
      .summary('Stop an agent and keep its work')
      .description('Stop an agent gracefully. Its record and its work are kept.')
      .argument('<agent>', whichAgent)
      .option('--yes', 'Do not ask for confirmation; accepted because `agent remove` has it')
      .example('ctl agent stop docs', 'stop the agent docs')
      .exitCode(1, 'no such agent, or failure'),
  ).action(async (words: string, flags: DaemonFlags) => {
    const { stopAgent } = await import('./acting.js');
    await stopAgent(words, flags, tools);
  });
}

export function addRestart(agent: CtlCommand, tools: Tools): void {
  withDaemon(
    agent
      .command('restart')
      .summary('Restart an agent where it stopped')
      .description(
        'Stop an agent if it is running and start it again in the same directory, resuming ' +
          'its session if its backend can.',
      )
      .argument('<agent>', whichAgent)
      .example('ctl agent restart docs', 'after it failed')
      .exitCode(1, 'no such agent, its backend cannot be used, or failure'),
  ).action(async (words: string, flags: DaemonFlags) => {
    const { restartAgent } = await import('./acting.js');
    await restartAgent(words, flags, tools);
  });
}

export function addRemove(agent: CtlCommand, tools: Tools): void {
  withDaemon(
    agent
      .command('remove')
      .alias('rm')
      .summary('Remove an agent')
      .description(
        'Stop an agent if it is running and remove it. Its worktree is deleted too, unless ' +
          'it has uncommitted or unmerged changes. Asks for confirmation while the agent is ' +
          'running.',
      )
      .argument('<agent>', whichAgent)
      .option('--yes', 'Do not ask for confirmation')
      .example('ctl agent remove docs', 'remove a finished agent')
      .example('ctl agent rm docs --yes', 'in a script')
      .exitCode(1, 'no such agent, or failure'),
  ).action(async (words: string, flags: DaemonFlags & { yes?: boolean }) => {
    const { removeAgent } = await import('./acting.js');
    await removeAgent(words, flags, tools);
  });
}

export function addAttach(agent: CtlCommand, tools: Tools): void {
  withDaemon(
    agent
      .command('attach')
      .summary('Open the terminal of an agent')
      .description(
        'Open the terminal of an agent that runs in tmux; what you type goes to it. Detach ' +
          'with Ctrl-B D. Works only on the machine of the daemon. With --json, print the ' +
          'command instead of running it.',
      )
      .argument('<agent>', whichAgent)
      .option('--read-only', 'Watch without typing')
      .example('ctl agent attach docs', 'type to it yourself')
      .example('ctl agent attach docs --read-only', 'only watch')
      .exitCode(0, 'you detached')
      .exitCode(1, 'no such agent, it has no terminal, or failure'),
  ).action(async (words: string, flags: DaemonFlags & { readOnly?: boolean }) => {
    const { attachToAgent } = await import('./attaching.js');
    await attachToAgent(words, flags, tools);
  });
}

export function addCompact(agent: CtlCommand, tools: Tools): void {
  const compact = agent
    .command('compact')
    .summary('Allow or forbid interrupting an agent to compact it')
    .description(
      'Override the setting tokens.force_compact for one agent: whether it is interrupted ' +
        'during a turn when its context is critically full.',
    )
    .example('ctl agent compact set docs on', 'interrupt it if necessary');
  withDaemon(
    compact
      .command('set')
      .summary('Override forced compaction for one agent')
      .description('Turn forced compaction on or off for one agent, or use the setting.')
      .argument('<agent>', whichAgent)
      .addArgument(new Argument('<state>', 'the override').choices(['on', 'off', 'inherit']))
      .example('ctl agent compact set docs on', 'interrupt it if necessary')
      .example('ctl agent compact set docs inherit', 'use the setting')
      .exitCode(1, 'no such agent, or failure'),
  ).action(async (words: string, state: string, flags: DaemonFlags) => {
    const { setCompact } = await import('./acting.js');
    await setCompact(words, state, flags, tools);
  });
}
