import { Option } from 'commander';
import type { CtlCommand } from '../base/command.js';
import { withDaemon } from '../daemon/api.js';
import { withQueue } from '../queue/api.js';
import { collect } from '../base/arguments.js';
import type { Tools } from '../base/tools.js';
import type { SpawnFlags } from './spawning.js';
import type { SubmitWorkFlags } from './submitting.js';

function withWork(command: CtlCommand): CtlCommand {
  return command
    .argument('[prompt]', 'the prompt of the agent, in quotes; - reads it from stdin')
    .option('--backend <id>', 'Use this backend (default: the default backend)')
    .option('--model <name>', 'Use this model of the backend')
    .option('--repo <dir>', 'Git repository to work in')
    .option('--cwd <dir>', 'Directory to work in (default: the current one)')
    .option('--branch <name>', 'Work on this branch, in a worktree of its own')
    .option('--worktree', 'Work in a worktree of its own')
    .option('--name <name>', 'Name of the agent (default: from the prompt)')
    .option('--tag <tag>', 'Label; may be repeated', collect)
    .option('--auto-restart', 'Restart it if it fails')
    .addOption(
      new Option(
        '--driver <driver>',
        'Over the Agent Client Protocol (acp), in a terminal (tmux), or once (headless)',
      ).choices(['acp', 'tmux', 'headless']),
    )
    .option('--force', 'Start even if a spend cap is reached');
}

export function addSpawn(agent: CtlCommand, tools: Tools): void {
  const command = agent
    .command('spawn')
    .summary('Start an agent now')
    .description(
      'Start an agent on a prompt and print how to follow it. If a spend cap is reached, ' +
        'show the figures and ask for confirmation; without a terminal, add --force. Without ' +
        '--repo and --cwd the agent works in the current directory.',
    );
  withDaemon(
    withWork(command)
      .option('--parent <agent>', 'Agent that starts this one')
      .example(
        'ctl agent spawn "Fix the failing upload test"',
        'in this directory, on the default backend',
      )
      .example('ctl agent spawn "Fix it" --repo . --branch fix-upload', 'on its own branch')
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
    .summary('Queue work for an agent')
    .description(
      'Submit the prompt as a task of the queue "agents", which `ctl up` creates. An agent ' +
        'is started when the task is delivered, a failed task is retried, and a task that ' +
        'keeps failing goes to the dead-letter queue with the end of its output.',
    );
  withQueue(
    withWork(command)
      .option('--at <time>', 'Not before this time: 2030-01-31T08:00:00Z')
      .option('--delay <duration>', 'Not before this much time has passed: 15m')
      .option('--priority <number>', '0 to 9, higher first (default: 4)')
      .option('--group <key>', 'Tasks of one group run one after another')
      .option('--expires-at <when>', 'Give up after this long, or at this time: 1h')
      .option(
        '--id <ulid>',
        'Id of the task; repeating the command with the same id stores nothing new',
      )
      .option('--queue <name>', 'Another queue of daemons (default: agents)')
      .option(
        '--label <key=value>',
        'Run it on a machine with this label; may be repeated, the rarest first',
        collect,
      )
      .option('--data <dir>', 'Data directory of a local `ctl up`, to find its queue and token')
      .option('--wait', 'Wait until the task has succeeded or is dead')
      .option('--timeout <duration>', 'Stop waiting after this long')
      .example(
        'ctl agent submit "Update the changelog" --repo .',
        'start it when the queue delivers it',
      )
      .example('ctl agent submit "Run the audit" --delay 8h', 'tonight')
      .example('ctl agent submit "Train it" --label gpu=true', 'on a machine with a GPU')
      .example('ctl agent submit "Fix it" --group mill --wait', 'after others of its group')
      .exitCode(0, 'stored; with --wait, succeeded')
      .exitCode(1, 'refused; with --wait, dead'),
  ).action(async (prompt: string | undefined, flags: SubmitWorkFlags) => {
    const { submitWork } = await import('./submitting.js');
    await submitWork(prompt, flags, tools);
  });
}
