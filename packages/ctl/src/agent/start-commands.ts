import { Option } from 'commander';
import type { CtlCommand } from '../command.js';
import { withDaemon } from '../daemon/api.js';
import { withQueue } from '../queue/api.js';
import { collect } from '../queue/arguments.js';
import type { Tools } from '../tools.js';
import type { SpawnFlags } from './spawning.js';
import type { SubmitWorkFlags } from './submitting.js';

function withWork(command: CtlCommand): CtlCommand {
  return command
    .argument('[prompt]', 'what the agent is told, in quotes; - reads it from stdin')
    .option('--backend <id>', 'Run this command line (default: the default backend)')
    .option('--model <name>', 'Ask the backend for this model')
    .option('--repo <dir>', 'Git repository to work in')
    .option('--cwd <dir>', 'Directory to work in (default: the current one)')
    .option('--branch <name>', 'Work on this branch, in a worktree of its own')
    .option('--worktree', 'Work in a worktree of its own')
    .option('--name <name>', 'Name for people (default: from the prompt)')
    .option('--tag <tag>', 'Label; may be repeated', collect)
    .option('--auto-restart', 'Restart it when it ends with an error')
    .addOption(
      new Option('--driver <driver>', 'With a terminal, or as one run').choices([
        'tmux',
        'headless',
      ]),
    )
    .option('--force', 'Go on although a spend cap is reached');
}

export function addSpawn(agent: CtlCommand, tools: Tools): void {
  const command = agent
    .command('spawn')
    .summary('Start an agent now')
    .description(
      'Starts an agent on a prompt and tells how to look at it. When a spend cap is reached it ' +
        'shows the figures and asks; where nobody can be asked, --force goes on. Without --repo ' +
        'and --cwd the agent works in the current directory.',
    );
  withDaemon(
    withWork(command)
      .option('--parent <agent>', 'The agent on whose behalf it is started')
      .example('ctl agent spawn "Fix the failing upload test"', 'here, on the default backend')
      .example('ctl agent spawn "Fix it" --repo . --branch fix-upload', 'on a branch of its own')
      .example('ctl agent spawn - --backend codex < task.md', 'a long prompt')
      .exitCode(0, 'started')
      .exitCode(1, 'refused, or failure'),
  ).action(async (prompt: string | undefined, flags: SpawnFlags) => {
    const { spawnAgent } = await import('./spawning.js');
    await spawnAgent(prompt, flags, tools);
  });
}

export function addSubmit(agent: CtlCommand, tools: Tools): void {
  const command = agent
    .command('submit')
    .summary('Lay work for an agent in the queue')
    .description(
      'Submits the prompt as a task of the queue "agents", which `ctl up` makes: an agent is ' +
        'started when its turn comes, a failed one is tried again, and what fails for good is ' +
        'kept in the dead-letter queue with the end of what it said.',
    );
  withQueue(
    withWork(command)
      .option('--at <time>', 'Not before this time: 2030-01-31T08:00:00Z')
      .option('--delay <duration>', 'Not before this long from now: 15m')
      .option('--priority <number>', '0 to 9, higher first (default: 4)')
      .option('--group <key>', 'Tasks of one group run one after another')
      .option('--expires-at <when>', 'Give up after this long or at this time: 1h')
      .option('--id <ulid>', 'Id of the task: repeating it stores nothing new')
      .option('--queue <name>', 'Another queue whose callback is a daemon (default: agents)')
      .option('--wait', 'Wait until the task has succeeded or is dead')
      .option('--timeout <duration>', 'Stop waiting after this long')
      .example('ctl agent submit "Update the changelog" --repo .', 'when its turn comes')
      .example('ctl agent submit "Run the audit" --delay 8h', 'in the night')
      .example('ctl agent submit "Fix it" --group mill --wait', 'after others of its group')
      .exitCode(0, 'stored; with --wait, succeeded')
      .exitCode(1, 'refused; with --wait, dead'),
  ).action(async (prompt: string | undefined, flags: SubmitWorkFlags) => {
    const { submitWork } = await import('./submitting.js');
    await submitWork(prompt, flags, tools);
  });
}
