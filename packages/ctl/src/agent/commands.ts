import type { CodeCommand, Commands } from '../base/declared.js';
import { withQueue } from '../queue/api.js';
import { planCommands } from './plan-commands.js';

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
const agentArgument = ['<agent>', 'agent name, id or id prefix'] as const;
const baseOption = '--base <revision>';
const forceWorking = 'Go on although the agent is working';

/** The work of an agent, as `spawn` and `submit` take it. */
const work = {
  arguments: [['[prompt]', 'the prompt of the agent, in quotes; - reads it from stdin']],
  options: [
    ['--backend <id>', 'Use this backend (default: the default backend)'],
    ['--model <name>', 'Use this model of the backend'],
    ['--repo <dir>', 'Git repository to work in'],
    ['--cwd <dir>', 'Directory to work in (default: the current one)'],
    ['--branch <name>', 'Work on this branch, in a worktree of its own'],
    ['--worktree', 'Work in a worktree of its own'],
    ['--name <name>', 'Name of the agent (default: from the prompt)'],
    ['--tag <tag>', 'Label; may be repeated', { repeats: true }],
    ['--auto-restart', 'Restart it if it fails'],
    [
      '--driver <driver>',
      'Over the Agent Client Protocol (acp), in a terminal (tmux), or once (headless)',
      { choices: ['acp', 'tmux', 'headless'] },
    ],
    ['--force', 'Start even if a spend cap is reached'],
  ],
} as const satisfies Partial<CodeCommand>;

/** Every command of `ctl agent`. */
export const commands: Commands = {
  list: {
    alias: 'ls',
    summary: 'List agents and their status',
    description:
      'List every agent that has not been removed, newest first: its status and for how long, ' +
      'its backend and the size of its context. Unknown values are shown as -.',
    options: [
      ['--status <status>', 'Only agents with this status', { choices: statuses }],
      ['--all', 'List the machines that share a queue, and what their agents work on'],
      ['--queue <name>', 'With --all: the queue that they claim from (default: agents)'],
      ['--queue-url <url>', 'With --all: its server (default: $MILLRACE_QUEUE_URL)'],
      ['--token-file <file>', 'With --all: file with the token of the queue server'],
    ],
    examples: [
      ['ctl agent list', 'all of them'],
      ['ctl agent list --all', 'on all machines'],
      ['ctl agent ls --status waiting_for_input', 'agents that need you'],
      ['ctl agent list --json', 'for scripts'],
    ],
    isView: true,
    run: async () => (await import('./views.js')).listAgents,
  },
  show: {
    summary: 'Show all details of an agent',
    description: 'Show everything the daemon knows about an agent.',
    arguments: [agentArgument],
    examples: [
      ['ctl agent show retry-upload', 'by its name'],
      ['ctl agent show 01K9ZQ --json', 'as the REST API has it'],
    ],
    exitCodes: { 1: 'no such agent, or failure' },
    isView: true,
    run: async () => (await import('./views.js')).showAgent,
  },
  spawn: {
    summary: 'Start an agent now',
    description:
      'Start an agent on a prompt and print how to follow it. If a spend cap is reached, ' +
      'show the figures and ask for confirmation; without a terminal, add --force. Without ' +
      '--repo and --cwd the agent works in the current directory.',
    arguments: work.arguments,
    options: [...work.options, ['--parent <agent>', 'Agent that starts this one']],
    examples: [
      [
        'ctl agent spawn "Fix the failing upload test"',
        'in this directory, on the default backend',
      ],
      ['ctl agent spawn "Fix it" --repo . --branch fix-upload', 'on its own branch'],
      ['ctl agent spawn - --backend codex < task.md', 'a long prompt'],
    ],
    exitCodes: { 0: 'started', 1: 'refused, or failure' },
    run: async () => (await import('./spawning.js')).spawnAgent,
  },
  submit: {
    summary: 'Queue work for an agent',
    description:
      'Submit the prompt as a task of the queue "agents", which `ctl up` creates. An agent ' +
      'is started when the task is delivered, a failed task is retried, and a task that ' +
      'keeps failing goes to the dead-letter queue with the end of its output.',
    arguments: work.arguments,
    options: [
      ...work.options,
      ['--at <time>', 'Not before this time: 2030-01-31T08:00:00Z'],
      ['--delay <duration>', 'Not before this much time has passed: 15m'],
      ['--priority <number>', '0 to 9, higher first (default: 4)'],
      ['--group <key>', 'Tasks of one group run one after another'],
      ['--expires-at <when>', 'Give up after this long, or at this time: 1h'],
      ['--id <ulid>', 'Id of the task; repeating the command with the same id stores nothing new'],
      ['--queue <name>', 'Another queue of daemons (default: agents)'],
      [
        '--label <key=value>',
        'Run it on a machine with this label; may be repeated, the rarest first',
        { repeats: true },
      ],
      ['--wait', 'Wait until the task has succeeded or is dead'],
      ['--timeout <duration>', 'Stop waiting after this long'],
    ],
    examples: [
      ['ctl agent submit "Update the changelog" --repo .', 'start it when the queue delivers it'],
      ['ctl agent submit "Run the audit" --delay 8h', 'tonight'],
      ['ctl agent submit "Train it" --label gpu=true', 'on a machine with a GPU'],
      ['ctl agent submit "Fix it" --group mill --wait', 'after others of its group'],
    ],
    exitCodes: { 0: 'stored; with --wait, succeeded', 1: 'refused; with --wait, dead' },
    run: async () => (await import('./submitting.js')).submitWork,
    connect: withQueue,
  },
  send: {
    summary: 'Send text to an agent',
    description:
      'Type text at the prompt of an agent and wait until its turn has started: the ' +
      'answer to its question, or more work. A headless run accepts no input.',
    arguments: [agentArgument, ['[text]', 'the text to send, in quotes; - reads it from stdin']],
    examples: [
      ['ctl agent send docs "Yes, go on."', 'answer its question'],
      ['ctl agent send docs - < more.md', 'a longer text'],
    ],
    exitCodes: { 1: 'no such agent, it takes no input, or failure' },
    run: async () => (await import('./acting.js')).sendToAgent,
  },
  questions: {
    summary: 'List open questions of agents',
    description:
      'List the open permission requests and choices of agents, newest first, with the options ' +
      'of each. With --all, also those that were answered, and who answered them.',
    options: [['--all', 'Also answered and closed questions']],
    examples: [
      ['ctl agent questions', 'what to decide'],
      ['ctl agent questions --all --json', 'who allowed what, for scripts'],
    ],
    isView: true,
    run: async () => (await import('./questions.js')).showQuestions,
  },
  answer: {
    summary: 'Answer a question of an agent',
    description:
      'Answer a permission request or a choice of an agent with one of its options, or with ' +
      '--text if it takes words, and wait until the agent has taken the answer.',
    arguments: [
      ['<question>', 'question id or id prefix, or an agent that asks only one'],
      ['[option]', 'id of the option, or its kind such as allow_once or reject'],
    ],
    options: [['--text <text>', 'Answer in words']],
    examples: [
      ['ctl agent answer 01K9ZT4Q 1', 'choose its first option'],
      ['ctl agent answer docs reject', 'refuse what the agent docs asks'],
    ],
    exitCodes: { 1: 'no such question or option, it is answered already, or failure' },
    run: async () => (await import('./questions.js')).answerQuestion,
  },
  logs: {
    summary: 'Show the output of an agent',
    description:
      "Show the end of an agent's output. With --follow, also print new output until the " +
      'agent has ended or Ctrl-C; with --json, one line of JSON per chunk.',
    arguments: [agentArgument],
    options: [
      ['-f, --follow', 'Follow the output until the agent has ended'],
      ['--lines <number>', 'Number of lines, 1 to 5000 (default: 100)'],
    ],
    examples: [
      ['ctl agent logs retry-upload', 'the last 100 lines'],
      ['ctl agent logs -f retry-upload', 'follow its output'],
    ],
    exitCodes: { 1: 'no such agent, or failure' },
    run: async () => (await import('./logs.js')).showLogs,
  },
  explain: {
    summary: 'Explain the status of an agent and the next steps',
    description:
      'Explain what the status of an agent means, since when and by which evidence, how ' +
      'full its context is, which limits apply and the last error; then what to do about ' +
      'it.',
    arguments: [agentArgument],
    examples: [['ctl agent explain retry-upload', 'why is it not working?']],
    exitCodes: { 1: 'no such agent, or failure' },
    run: async () => (await import('./views.js')).explainAgent,
  },
  attach: {
    summary: 'Open the terminal of an agent',
    description:
      'Open the terminal of an agent that runs in tmux; what you type goes to it. Detach ' +
      'with Ctrl-B D. Works only on the machine of the daemon. With --json, print the ' +
      'command instead of running it.',
    arguments: [agentArgument],
    options: [['--read-only', 'Watch without typing']],
    examples: [
      ['ctl agent attach docs', 'type to it yourself'],
      ['ctl agent attach docs --read-only', 'only watch'],
    ],
    exitCodes: { 0: 'you detached', 1: 'no such agent, it has no terminal, or failure' },
    run: async () => (await import('./attaching.js')).attachToAgent,
  },
  stop: {
    summary: 'Stop an agent and keep its work',
    description: 'Stop an agent gracefully. Its record and its work are kept.',
    arguments: [agentArgument],
    options: [['--yes', 'Do not ask for confirmation; accepted because `agent remove` has it']],
    examples: [['ctl agent stop docs', 'stop the agent docs']],
    exitCodes: { 1: 'no such agent, or failure' },
    run: async () => (await import('./acting.js')).stopAgent,
  },
  restart: {
    summary: 'Restart an agent where it stopped',
    description:
      'Stop an agent if it is running and start it again in the same directory, resuming ' +
      'its session if its backend can.',
    arguments: [agentArgument],
    examples: [['ctl agent restart docs', 'after it failed']],
    exitCodes: { 1: 'no such agent, its backend cannot be used, or failure' },
    run: async () => (await import('./acting.js')).restartAgent,
  },
  serve: {
    summary: "Start the server of an agent's worktree",
    description:
      'Run `serve` of the repository in the worktree of an agent, with a free port in $PORT, and ' +
      'print its address. A server that already runs is shown. It ends with the agent.',
    arguments: [agentArgument],
    examples: [['ctl agent serve docs', 'look at its work in a browser']],
    exitCodes: { 1: 'no such agent, nothing to serve, or the server ended at once' },
    run: async () => (await import('./acting.js')).serveAgent,
  },
  remove: {
    alias: 'rm',
    summary: 'Remove an agent',
    description:
      'Stop an agent if it is running and remove it. Its worktree is deleted too, unless ' +
      'it has uncommitted or unmerged changes. Asks for confirmation while the agent is ' +
      'running.',
    arguments: [agentArgument],
    options: [['--yes', 'Do not ask for confirmation']],
    examples: [
      ['ctl agent remove docs', 'remove a finished agent'],
      ['ctl agent rm docs --yes', 'in a script'],
    ],
    exitCodes: { 1: 'no such agent, or failure' },
    run: async () => (await import('./acting.js')).removeAgent,
  },
  compact: {
    summary: 'Allow or forbid interrupting an agent to compact it',
    description:
      'Override the setting tokens.force_compact for one agent: whether it is interrupted ' +
      'during a turn when its context is critically full.',
    examples: [['ctl agent compact set docs on', 'interrupt it if necessary']],
    commands: {
      set: {
        summary: 'Override forced compaction for one agent',
        description: 'Turn forced compaction on or off for one agent, or use the setting.',
        arguments: [agentArgument, ['<state>', 'the override', ['on', 'off', 'inherit']]],
        examples: [
          ['ctl agent compact set docs on', 'interrupt it if necessary'],
          ['ctl agent compact set docs inherit', 'use the setting'],
        ],
        exitCodes: { 1: 'no such agent, or failure' },
        run: async () => (await import('./acting.js')).setCompact,
      },
    },
  },
  diff: {
    summary: 'Show what an agent changed',
    description:
      'Show the changes of an agent since its branch left the base: commits, uncommitted ' +
      'changes and new files, as a unified diff of at most 5,000 lines.',
    arguments: [agentArgument],
    options: [
      [baseOption, 'Compare with this branch or commit (default: the base of its worktree)'],
      ['--stat', 'List the files and the number of changed lines only'],
    ],
    examples: [
      ['ctl agent diff docs', 'review it'],
      ['ctl agent diff docs --stat', 'which files'],
    ],
    exitCodes: { 1: 'no such agent, it has no git workspace, or failure' },
    run: async () => (await import('./workbench.js')).showDiff,
  },
  commit: {
    summary: 'Commit the changes of an agent',
    description:
      'Commit every change in the workspace of an agent, new files included. Refused while ' +
      'the agent is working, unless forced.',
    arguments: [agentArgument],
    options: [
      ['-m, --message <text>', 'Commit message (default: the name of the agent)'],
      ['--force', forceWorking],
    ],
    examples: [['ctl agent commit docs -m "Describe retries"', 'with a message']],
    exitCodes: { 1: 'no such agent, nothing to commit, or failure' },
    run: async () => (await import('./workbench.js')).commitAgent,
  },
  push: {
    summary: 'Push the branch of an agent',
    description: 'Push the commits on the branch of an agent to a remote.',
    arguments: [agentArgument],
    options: [
      ['--remote <name>', 'Remote (default: the one its branch tracks, or origin)'],
      ['--force', 'Replace the remote branch, unless somebody else has moved it'],
    ],
    examples: [
      ['ctl agent push docs', 'to origin'],
      ['ctl agent push docs --force', 'after a rebase'],
    ],
    exitCodes: { 1: 'no such agent, the remote refuses, or failure' },
    run: async () => (await import('./workbench.js')).pushAgent,
  },
  'open-pr': {
    summary: 'Open a pull request for an agent',
    description:
      'Push the branch of an agent and open a pull request with the GitHub command line gh ' +
      "on the daemon's machine.",
    arguments: [agentArgument],
    options: [
      ['--title <text>', 'Title (default: the name of the agent)'],
      ['--body <text>', 'Description'],
      ['--draft', 'Open it as a draft'],
      [baseOption, 'Branch to merge into (default: the base of its worktree)'],
    ],
    examples: [['ctl agent open-pr docs --title "Describe retries" --draft', 'as a draft']],
    exitCodes: { 1: 'no such agent, gh is missing or refuses, or failure' },
    run: async () => (await import('./workbench.js')).openPr,
  },
  merge: {
    summary: 'Merge the branch of an agent into its base',
    description:
      'Take the commits of an agent into the base branch of the same clone. Nothing is ' +
      'changed when they conflict, when there are uncommitted changes, or while the agent ' +
      'is working, unless forced.',
    arguments: [agentArgument],
    options: [
      [
        '--strategy <strategy>',
        'Merge commit, one commit, or commits replayed',
        { choices: ['merge', 'squash', 'rebase'], default: 'merge' },
      ],
      ['-m, --message <text>', 'Message of the merge or squash commit'],
      [baseOption, 'Branch to merge into (default: the base of its worktree)'],
      ['--force', forceWorking],
    ],
    examples: [
      ['ctl agent merge docs', 'with a merge commit'],
      ['ctl agent merge docs --strategy squash', 'as one commit'],
    ],
    exitCodes: { 1: 'no such agent, a conflict, uncommitted changes, or failure' },
    run: async () => (await import('./workbench.js')).mergeAgent,
  },
  rebase: {
    summary: 'Rebase the branch of an agent onto its base',
    description:
      'Replay the commits of an agent on the tip of its base. Nothing is changed when one of ' +
      'them conflicts.',
    arguments: [agentArgument],
    options: [
      [baseOption, 'Branch or commit to rebase onto (default: the base of its worktree)'],
      ['--force', forceWorking],
    ],
    examples: [['ctl agent rebase docs', 'onto the base of its worktree']],
    exitCodes: { 1: 'no such agent, a conflict, uncommitted changes, or failure' },
    run: async () => (await import('./workbench.js')).rebaseAgent,
  },
  ...planCommands,
};
