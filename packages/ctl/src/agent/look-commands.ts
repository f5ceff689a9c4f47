import { Option } from 'commander';
import type { CtlCommand } from '../command.js';
import { withDaemon, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../tools.js';
import type { ListFlags } from './looking.js';
import type { LogsFlags } from './logs.js';

const statuses = [
  'spawning',
  'working',
  'waiting_for_input',
  'idle',
  'done',
  'errored',
  'orphaned',
  'rate_limited',
];

export const whichAgent = 'its name, its id, or the beginning of its id';

export function addList(agent: CtlCommand, tools: Tools): void {
  withDaemon(
    agent
      .command('list')
      .alias('ls')
      .summary('List the agents and what they do')
      .description(
        'Lists every agent that has not been removed, newest first: its status and for how long, ' +
          'its backend and the size of its context. What is not known is shown as -.',
      )
      .addOption(new Option('--status <status>', 'Only those').choices(statuses))
      .example('ctl agent list', 'all of them')
      .example('ctl agent ls --status waiting_for_input', 'who needs me?')
      .example('ctl agent list --json', 'for scripts'),
  ).action(async (flags: ListFlags) => {
    const { listAgents } = await import('./looking.js');
    await listAgents(flags, tools);
  });
}

export function addShow(agent: CtlCommand, tools: Tools): void {
  withDaemon(
    agent
      .command('show')
      .summary('Show all that is known of an agent')
      .description('Shows everything that the daemon knows of an agent.')
      .argument('<agent>', whichAgent)
      .example('ctl agent show retry-upload', 'by its name')
      .example('ctl agent show 01K9ZQ --json', 'as the REST API has it')
      .exitCode(1, 'no such agent, or failure'),
  ).action(async (words: string, flags: DaemonFlags) => {
    const { showAgent } = await import('./looking.js');
    await showAgent(words, flags, tools);
  });
}

export function addExplain(agent: CtlCommand, tools: Tools): void {
  withDaemon(
    agent
      .command('explain')
      .summary('Tell what an agent is up to and what to do')
      .description(
        'Tells what the status of an agent means, since when and by which evidence, how full its ' +
          'context is, which limits hold it and what last went wrong; then what to do about it.',
      )
      .argument('<agent>', whichAgent)
      .example('ctl agent explain retry-upload', 'why does it not go on?')
      .exitCode(1, 'no such agent, or failure'),
  ).action(async (words: string, flags: DaemonFlags) => {
    const { explainAgent } = await import('./looking.js');
    await explainAgent(words, flags, tools);
  });
}

export function addLogs(agent: CtlCommand, tools: Tools): void {
  withDaemon(
    agent
      .command('logs')
      .summary('Show what an agent wrote')
      .description(
        'Shows the end of what an agent wrote. With --follow, also what it writes from then on, ' +
          'until it has ended or Ctrl-C; with --json then a line of JSON for each piece.',
      )
      .argument('<agent>', whichAgent)
      .option('-f, --follow', 'Go on until it has ended')
      .option('--lines <number>', 'So many lines of what is there, 1 to 5000 (default: 100)')
      .example('ctl agent logs retry-upload', 'the last 100 lines')
      .example('ctl agent logs -f retry-upload', 'read along')
      .exitCode(1, 'no such agent, or failure'),
  ).action(async (words: string, flags: LogsFlags) => {
    const { showLogs } = await import('./logs.js');
    await showLogs(words, flags, tools);
  });
}
