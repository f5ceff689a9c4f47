import { Option } from 'commander';
import type { CtlCommand } from '../base/command.js';
import { withDaemon, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';
import type { FleetFlags } from './fleet.js';
import type { ListFlags } from './views.js';
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

export const whichAgent = 'agent name, id or id prefix';

export function addList(agent: CtlCommand, tools: Tools): void {
  withDaemon(
    agent
      .command('list')
      .alias('ls')
      .summary('List agents and their status')
      .description(
        'List every agent that has not been removed, newest first: its status and for how long, ' +
          'its backend and the size of its context. Unknown values are shown as -.',
      )
      .addOption(new Option('--status <status>', 'Only agents with this status').choices(statuses))
      .option('--all', 'List the machines that share a queue, and what their agents work on')
      .option('--queue <name>', 'With --all: the queue that they claim from (default: agents)')
      .option('--queue-url <url>', 'With --all: its server (default: $MILLRACE_QUEUE_URL)')
      .option('--token-file <file>', 'With --all: file with the token of the queue server')
      .example('ctl agent list', 'all of them')
      .example('ctl agent list --all', 'on all machines')
      .example('ctl agent ls --status waiting_for_input', 'agents that need you')
      .example('ctl agent list --json', 'for scripts'),
  )
    .shown(tools)
    .action(async (flags: ListFlags & FleetFlags & { all?: boolean }) => {
      if (flags.all) {
        const { listFleet } = await import('./fleet.js');
        return listFleet(flags, tools);
      }
      const { listAgents } = await import('./views.js');
      await listAgents(flags, tools);
    });
}

export function addShow(agent: CtlCommand, tools: Tools): void {
  withDaemon(
    agent
      .command('show')
      .summary('Show all details of an agent')
      .description('Show everything the daemon knows about an agent.')
      .argument('<agent>', whichAgent)
      .example('ctl agent show retry-upload', 'by its name')
      .example('ctl agent show 01K9ZQ --json', 'as the REST API has it')
      .exitCode(1, 'no such agent, or failure'),
  )
    .shown(tools)
    .action(async (words: string, flags: DaemonFlags) => {
      const { showAgent } = await import('./views.js');
      await showAgent(words, flags, tools);
    });
}

export function addExplain(agent: CtlCommand, tools: Tools): void {
  withDaemon(
    agent
      .command('explain')
      .summary('Explain the status of an agent and the next steps')
      .description(
        'Explain what the status of an agent means, since when and by which evidence, how ' +
          'full its context is, which limits apply and the last error; then what to do about ' +
          'it.',
      )
      .argument('<agent>', whichAgent)
      .example('ctl agent explain retry-upload', 'why is it not working?')
      .exitCode(1, 'no such agent, or failure'),
  ).action(async (words: string, flags: DaemonFlags) => {
    const { explainAgent } = await import('./views.js');
    await explainAgent(words, flags, tools);
  });
}

export function addLogs(agent: CtlCommand, tools: Tools): void {
  withDaemon(
    agent
      .command('logs')
      .summary('Show the output of an agent')
      .description(
        "Show the end of an agent's output. With --follow, also print new output until the " +
          'agent has ended or Ctrl-C; with --json, one line of JSON per chunk.',
      )
      .argument('<agent>', whichAgent)
      .option('-f, --follow', 'Follow the output until the agent has ended')
      .option('--lines <number>', 'Number of lines, 1 to 5000 (default: 100)')
      .example('ctl agent logs retry-upload', 'the last 100 lines')
      .example('ctl agent logs -f retry-upload', 'follow its output')
      .exitCode(1, 'no such agent, or failure'),
  ).action(async (words: string, flags: LogsFlags) => {
    const { showLogs } = await import('./logs.js');
    await showLogs(words, flags, tools);
  });
}
