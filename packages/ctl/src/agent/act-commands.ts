import { Argument } from 'commander';
import type { CtlCommand } from '../command.js';
import { withDaemon, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../tools.js';
import { whichAgent } from './look-commands.js';

export function addSend(agent: CtlCommand, tools: Tools): void {
  withDaemon(
    agent
      .command('send')
      .summary('Tell an agent something')
      .description(
        'Types the text into the prompt of an agent and waits until its turn has begun: the ' +
          'answer to its question, or more to do. A headless run takes none.',
      )
      .argument('<agent>', whichAgent)
      .argument('[text]', 'what to tell it, in quotes; - reads it from stdin')
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
      .summary('End an agent and keep what it did')
      .description('Ends an agent, gently first. What is known of it stays, and so does its work.')
      .argument('<agent>', whichAgent)
      .option('--yes', 'Do not ask; accepted because `agent remove` has it')
      .example('ctl agent stop docs', 'end the agent docs')
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
      .summary('Run an agent again where it stopped')
      .description(
        'Ends an agent if it runs and starts it again in the same directory, going on with what ' +
          'it had where its backend can.',
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
      .summary('Forget an agent')
      .description(
        'Ends an agent if it runs and forgets it. Its worktree goes with it, unless something ' +
          'in it is not committed or not merged. Asks first when the agent still runs.',
      )
      .argument('<agent>', whichAgent)
      .option('--yes', 'Do not ask')
      .example('ctl agent remove docs', 'it is done')
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
      .summary('Sit down at the terminal of an agent')
      .description(
        'Shows the terminal of an agent that runs in tmux; what you type goes to it. Leave it ' +
          'running with Ctrl-B D. Only on the machine of the daemon. With --json it tells the ' +
          'command instead of running it.',
      )
      .argument('<agent>', whichAgent)
      .option('--read-only', 'Look and do not type')
      .example('ctl agent attach docs', 'type to it yourself')
      .example('ctl agent attach docs --read-only', 'only look')
      .exitCode(0, 'you have left it')
      .exitCode(1, 'no such agent, it has no terminal, or failure'),
  ).action(async (words: string, flags: DaemonFlags & { readOnly?: boolean }) => {
    const { attachToAgent } = await import('./attaching.js');
    await attachToAgent(words, flags, tools);
  });
}

export function addCompact(agent: CtlCommand, tools: Tools): void {
  const compact = agent
    .command('compact')
    .summary('Say whether an agent may be interrupted to compact it')
    .description(
      'Overrides the setting tokens.force_compact for one agent: whether it is interrupted in ' +
        'the middle of a turn when its context is critically full.',
    )
    .example('ctl agent compact set docs on', 'interrupt it when need be');
  withDaemon(
    compact
      .command('set')
      .summary('Override forced compaction for one agent')
      .description('Turns forced compaction on or off for one agent, or lets the setting decide.')
      .argument('<agent>', whichAgent)
      .addArgument(new Argument('<state>', 'the override').choices(['on', 'off', 'inherit']))
      .example('ctl agent compact set docs on', 'interrupt it when need be')
      .example('ctl agent compact set docs inherit', 'as the setting says')
      .exitCode(1, 'no such agent, or failure'),
  ).action(async (words: string, state: string, flags: DaemonFlags) => {
    const { setCompact } = await import('./acting.js');
    await setCompact(words, state, flags, tools);
  });
}
