import type { CodeCommand } from '../base/declared.js';
import type { TopCommand } from '../base/groups.js';
import { withDaemon } from '../daemon/api.js';
import { daemonServer } from '../daemon/server.js';
import { spendTables } from '../usage/spend-tables.js';

const configOption = ['--config <file>', 'Read this file instead of the running daemon'] as const;
const changeOption = ['--config <file>', 'Change this file'] as const;
const sinceHelp = 'Start of the report: 24h, 7d, 2w, a date, or an RFC 3339 time';
const listOptions = [
  ['--unread', 'Only unread notifications'],
  ['--limit <number>', 'Maximum number, 1 to 1000 (default: 200)'],
] as const;

const spend = (path: string): CodeCommand => ({
  summary: 'Show what the agents have spent',
  description:
    "Show dollars and tokens from the agents' own transcripts: today, this week and in " +
    'total, by agent, repository and model, at the list price of each model with its cache.',
  options: [
    ['--by <what>', 'Show the whole table of one kind', { choices: Object.keys(spendTables) }],
  ],
  examples: [
    [`${path} spend`, 'totals and the largest of each kind'],
    [`${path} spend --by day`, 'a row for each day'],
    [`${path} spend --by repo -o name`, 'repositories only'],
    [`${path} spend --by model -o csv`, 'for a spreadsheet'],
    [`${path} spend --json`, 'the response of the REST API'],
  ],
  isView: true,
  run: async () => (await import('../usage/spend-screen.js')).showSpend,
});

const savings = (path: string): CodeCommand => ({
  summary: 'Show the tokens saved',
  description:
    'Show how many tokens of output and context were saved, and how much work the local ' +
    'model did instead of a cloud model. The two are never added up. --calibrate sends ' +
    'stored samples to the token counter of the provider, with the key in ' +
    'ANTHROPIC_API_KEY, and works only on the machine of the daemon.',
  options: [
    ['--since <when>', sinceHelp],
    ['--benchmark', 'Compare usage with and without savings'],
    ['--audit', 'Show the newest samples of raw and shortened text'],
    ['--calibrate', 'Measure the bytes per token'],
    ['--calibrate-max <count>', 'Maximum number of samples to count (default: 50)'],
  ],
  examples: [
    [`${path} savings`, 'all time'],
    [`${path} savings --since 7d`, 'with the trend of a week'],
    [`${path} savings --benchmark --since 2026-01-01`, 'without and with'],
    [`${path} savings --json`, 'the response of the REST API'],
  ],
  exitCodes: { 1: 'no daemon, savings are off, not calibrated, or failure' },
  isView: true,
  run: async () => (await import('../savings/savings.js')).showSavings,
});

/** What the daemon knows of usage, resources, notifications and settings. */
export const top: Readonly<Record<string, TopCommand>> = {
  usage: {
    server: daemonServer,
    description:
      'Show how much of each subscription is used, as reported by the providers, and when ' +
      'it resets. Reports younger than 60 seconds come from the cache. What a provider ' +
      'does not report is unknown, never 0.',
    options: [['--refresh', 'Query the providers again, except those that asked to wait']],
    examples: [
      ['ctl usage', 'every subscription backend'],
      ['ctl usage --refresh', 'query the providers again'],
      ['ctl usage --json', 'the stable document, version 1'],
      ['ctl usage spend', 'what the agents have spent'],
    ],
    exitCodes: {
      0: 'every row is known, or cannot be known',
      1: 'no document: no daemon, or failure',
      2: 'a provider failed and the rest is shown, or usage error',
    },
    isView: true,
    run: async () => (await import('../usage/usage.js')).showUsage,
    commands: {
      spend: spend('ctl usage'),
      blocks: {
        summary: 'Show five-hour blocks',
        description:
          'Show tokens, price and rate of one backend in blocks of five hours, which begin with the ' +
          'full hour of their first message, and what the present one will come to.',
        options: [
          ['--backend <id>', 'Whose transcripts count (default: claude)'],
          ['--active', 'Show the present block only'],
        ],
        examples: [
          ['ctl usage blocks', 'all blocks of claude'],
          ['ctl usage blocks --active --json', 'the present block'],
          ['ctl usage blocks --backend codex -o csv', 'for a spreadsheet'],
        ],
        isView: true,
        run: async () => (await import('../usage/blocks.js')).showBlocks,
      },
      value: {
        summary: 'Show what the agents brought',
        description:
          'Show dollars per merged branch, per finished task and per backend, and how often the ' +
          'first try succeeded.',
        examples: [
          ['ctl usage value', 'a row for each backend'],
          ['ctl usage value --json', 'the response of the REST API'],
        ],
        isView: true,
        run: async () => (await import('../usage/blocks.js')).showValue,
      },
      statusline: {
        connect: null,
        summary: 'Print one line for the status line of an agent',
        description:
          'Print what was spent today and in the present five-hour block, in one line. It needs no ' +
          'daemon. Facts that claude writes to the standard input of its status line are shown too.',
        options: [['--refresh', 'Only bring the figures up to date', { isHidden: true }]],
        examples: [
          ['ctl usage statusline', 'the command of `statusLine` in the settings of claude'],
        ],
        run: async () => (await import('../usage/statusline-figures.js')).showFigures,
      },
      insights: {
        summary: 'Show patterns in the sessions of agents',
        description:
          'Show patterns in the history of the agents: session durations, the busiest hours, ' +
          'error rates, files edited together and sessions that could run in parallel.',
        options: [['--since <when>', sinceHelp]],
        examples: [
          ['ctl usage insights', 'of all time'],
          ['ctl usage insights --since 30d', 'sessions of the last 30 days'],
          ['ctl usage insights --json', 'the response of the REST API'],
        ],
        isView: true,
        run: async () => (await import('../usage/insights.js')).showInsights,
      },
      savings: savings('ctl usage'),
    },
  },
  cost: {
    server: daemonServer,
    description: 'Show spend and savings of the agents on one screen.',
    examples: [
      ['ctl cost', 'both at a glance'],
      ['ctl cost usage spend --by repo', 'the same as `ctl usage spend --by repo`'],
      ['ctl cost --json', 'both documents of the REST API'],
    ],
    isView: true,
    run: async () => (await import('../cost/cost.js')).showCost,
    commands: {
      usage: {
        summary: 'Show spend or savings alone',
        description: 'Show spend or savings alone, like `ctl usage`.',
        examples: [
          ['ctl cost usage spend', 'what was spent'],
          ['ctl cost usage savings', 'what was saved'],
        ],
        commands: { spend: spend('ctl cost usage'), savings: savings('ctl cost usage') },
      },
    },
  },
  inspect: {
    server: daemonServer,
    description:
      'Show the resources that the machine, the agents and the daemon use, now and over time.',
    examples: [
      ['ctl inspect resources', 'now'],
      ['ctl inspect resources --history', 'over the last day'],
    ],
    commands: {
      resources: {
        summary: 'Show CPU, memory and load of the machine, agents and daemon',
        description:
          'Show CPU, memory and load of the machine, CPU, memory and context of each live ' +
          'agent with all its child processes, and the usage of the daemon itself. CPU of the ' +
          'machine is a share of all cores, CPU of an agent a share of one core. Unknown ' +
          'values are shown as -.',
        options: [
          ['--watch', 'Redraw every 3 seconds until Ctrl-C'],
          ['--history', 'Show the history, recorded every 15 seconds'],
          [
            '--since <when>',
            'Start of the history: 6h, 7d, a date or an RFC 3339 time',
            { default: '24h' },
          ],
        ],
        examples: [
          ['ctl inspect resources', 'now'],
          ['ctl inspect resources --watch', 'redraw every 3 seconds'],
          ['ctl inspect resources --history --since 7d', 'the last 7 days as small charts'],
          ['ctl inspect resources --json', 'the response of the REST API'],
        ],
        run: async () => (await import('../inspect/resources.js')).showResources,
      },
    },
  },
  inbox: {
    server: daemonServer,
    description:
      'Show notifications of the daemon, newest first: agents that wait or have failed, ' +
      'contexts that are full, branches whose checks fail. A star marks unread ones.',
    options: listOptions,
    examples: [
      ['ctl inbox', 'everything'],
      ['ctl inbox --unread', 'only unread ones'],
      ['ctl inbox read --all', 'mark all as read'],
    ],
    isView: true,
    run: async () => (await import('../inbox/inbox.js')).showInbox,
    commands: {
      list: {
        alias: 'ls',
        summary: 'List notifications, like `ctl inbox`',
        description: 'List notifications, newest first. A star marks unread ones.',
        options: listOptions,
        examples: [['ctl inbox list --unread --json', 'for scripts']],
        isView: true,
        run: async () => (await import('../inbox/inbox.js')).showInbox,
      },
      read: {
        summary: 'Mark notifications as read',
        description: 'Mark notifications as read.',
        arguments: [['[notes...]', 'ids or id prefixes']],
        options: [['--all', 'All unread notifications']],
        examples: [
          ['ctl inbox read 01K9ZS3M', 'one'],
          ['ctl inbox read --all', 'all of them'],
        ],
        exitCodes: { 1: 'no such notification, or failure' },
        run: async () => (await import('../inbox/inbox.js')).readNotesAway,
      },
    },
  },
  config: {
    server: daemonServer,
    description:
      'Show every setting of the daemon with its value and its source: a flag, a variable, ' +
      'the config file or the default. Reads the running daemon, or shows the settings ' +
      'that one would start with. Secrets are masked.',
    arguments: [['[key]', 'one setting, such as tokens.warn, or a group of them, such as tokens']],
    connect: (command) => withDaemon(command).option(...configOption),
    examples: [
      ['ctl config', 'everything'],
      ['ctl config tokens', 'one group'],
      ['ctl config --config config.yaml', 'check a file before it is used'],
      ['ctl config --json', 'for scripts'],
    ],
    run: async () => (await import('../config/config.js')).showConfig,
    commands: {
      get: {
        connect: withDaemon,
        summary: 'Print the value of one setting',
        description: 'Print the value of one setting, and nothing else. Secrets are masked.',
        arguments: [['<key>', 'the setting, such as tokens.warn']],
        options: [configOption],
        examples: [['ctl config get tokens.warn', 'for scripts']],
        run: async () => (await import('../config/config.js')).printSetting,
      },
      set: {
        connect: withDaemon,
        summary: 'Write one setting into the config file',
        description:
          'Write one setting into the config file of the daemon, which keeps its comments. The ' +
          'result is validated first. A running daemon applies it at once, or the command says that it ' +
          'needs a restart.',
        arguments: [
          ['<key>', 'the setting, such as tokens.warn'],
          ['<value>', 'as in the file: 150k, true, [claude, codex]'],
        ],
        options: [changeOption],
        examples: [
          ['ctl config set tokens.warn 150k', 'change one setting'],
          ['ctl config set metrics false --config config.yaml', 'in this file'],
        ],
        exitCodes: { 2: 'usage error, or the value is invalid' },
        run: async () => (await import('../config/changing.js')).setSetting,
      },
      edit: {
        connect: withDaemon,
        summary: 'Edit the config file',
        description:
          'Open the config file of the daemon in $VISUAL, $EDITOR or vi. It is stored only if it ' +
          'is valid. A running daemon applies what it can; the rest is named.',
        options: [changeOption],
        examples: [['ctl config edit', 'change several settings']],
        exitCodes: { 1: 'nothing was changed, or failure' },
        run: async () => (await import('../config/changing.js')).editSettings,
      },
    },
  },
};
